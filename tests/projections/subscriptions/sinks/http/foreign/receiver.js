// A receiver: says what the JavaScript libraries make of each request, one JSON object to a line.
const http = require("http");
const { HTTP } = require("cloudevents");
const { Webhook } = require("standardwebhooks");

const webhook = new Webhook(process.argv.at(-1));

function read(request, body) {
  const message = { headers: request.headers, body };
  try {
    webhook.verify(body, request.headers);
    var verified = true;
  } catch {
    var verified = false;
  }
  try {
    return { events: HTTP.toEvent(message), verified };
  } catch (error) {
    return { error: String(error) };
  }
}

const server = http.createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    console.log(JSON.stringify(read(request, Buffer.concat(parts).toString())));
    response.writeHead(202).end();
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
