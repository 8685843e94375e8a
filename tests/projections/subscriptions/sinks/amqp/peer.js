// A peer of AMQP 1.0 that does with a message what the address of its link says, and tells what it sees, a line each.
// Addresses: accept, release, modify, silent, nocredit, small, reject[=CONDITION], detach=CONDITION, end=CONDITION,
// close=CONDITION. Arguments: address to listen on, user, password, milliseconds of silence that it bears. A line that
// it reads is answered by a line, after those about what it has seen until then.
const container = require('rhea').create_container({ id: 'peer' });
const [host, user, password, silence] = process.argv.slice(1);

function tell(what) {
  process.stdout.write(JSON.stringify(what) + '\n');
}

container.sasl_server_mechanisms.enable_anonymous();
container.sasl_server_mechanisms.enable_plain((name, secret) => {
  tell({ plain: [name, secret] });
  return name === user && secret === password;
});

container.on('connection_open', (context) => {
  const open = context.connection.remote.open;
  tell({ open: { hostname: open.hostname, container_id: open.container_id } });
});
container.on('connection_error', () => {});
container.on('disconnected', () => {});
container.on('error', () => {});

container.on('receiver_open', (context) => {
  const receiver = context.receiver;
  const attach = receiver.remote.attach;
  const address = attach.target.address;
  const [verb, condition] = address.split('=');
  tell({ attach: { name: attach.name, address, properties: attach.properties, mode: attach.snd_settle_mode } });
  const error = { condition, description: 'because ' + password };
  receiver.set_target({ address });
  if (verb === 'small') receiver.local.attach.max_message_size = 100;
  if (verb === 'detach') receiver.close(error);
  else if (verb === 'end') context.session.close(error);
  else if (verb === 'close') context.connection.close(error);
  else if (verb !== 'nocredit') receiver.add_credit(1000);
});

container.on('message', (context) => {
  const { message, delivery, receiver } = context;
  const [verb, condition] = receiver.remote.attach.target.address.split('=');
  const body = message.body && message.body.content ? message.body.content.toString() : String(message.body);
  tell({
    message: {
      id: message.message_id,
      to: message.to,
      content_type: message.content_type,
      durable: message.durable,
      properties: message.application_properties,
      section: message.body && message.body.typecode,
      body,
    },
    settled: Boolean(delivery.remote_settled),
  });
  if (verb === 'release') delivery.release();
  else if (verb === 'modify') delivery.modified({ delivery_failed: true });
  else if (verb === 'reject') delivery.reject(condition ? { condition, description: 'because ' + password } : undefined);
  else if (verb !== 'silent') delivery.accept();
});

const server = container.listen({
  port: 0,
  host,
  receiver_options: { autoaccept: false, autosettle: true, credit_window: 0 },
  idle_time_out: Number(silence) || undefined,
});
server.on('listening', () => tell({ port: server.address().port }));
process.stdin.on('end', () => process.exit(0)).on('data', () => tell({ asked: true }));
