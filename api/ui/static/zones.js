// Times of fields, between UTC and the zone of the browser.
export function zoneName() {
  const parts = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" }).formatToParts(new Date());
  return parts.find(part => part.type === "timeZoneName").value;
}

export function toLocal(utc) {
  const date = new Date(`${utc}Z`);
  if (Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
}

export function toUtc(local) {
  const date = new Date(local);
  return Number.isNaN(date.getTime()) ? local : date.toISOString().slice(0, 19);
}
