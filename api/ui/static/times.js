// Shows times in the zone of the browser, with its name. The time in UTC stays in `title`.
const format = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
  hourCycle: "h23", timeZoneName: "short",
});

export function localText(date) {
  const part = Object.fromEntries(format.formatToParts(date).map(each => [each.type, each.value]));
  return `${part.year}-${part.month}-${part.day} ${part.hour}:${part.minute}:${part.second} ${part.timeZoneName}`;
}

export function showTimes(within) {
  for (const element of within.querySelectorAll("time[datetime]")) {
    const date = new Date(element.dateTime);
    if (!Number.isNaN(date.getTime())) element.textContent = localText(date);
  }
}

showTimes(document);
