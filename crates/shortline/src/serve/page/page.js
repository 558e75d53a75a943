const BYTES = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "KB"], [1, "B"]];
const BITS = [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]];

function scaled(number, units) {
  if (!(number > 0)) return `0 ${units[units.length - 1][1]}`;
  const [unit, name] = units.find(([unit]) => number >= unit) || units[units.length - 1];
  const value = number / unit;
  return `${value >= 100 ? value.toFixed(0) : value.toPrecision(3).replace(/\.?0+$/, "")} ${name}`;
}

const bytes = (number) => scaled(number, BYTES);
const bits = (number) => scaled(number, BITS);
const mean = ([number, seconds]) => (number ? time(1e9 * seconds / number) : "–");
const perSecond = (rate) => (rate >= 100 ? Math.round(rate).toLocaleString("en") : rate.toFixed(1));

// How many times as long the same responses take under fair sharing, from the sums of both.
function ratio(fair, ours) {
  if (!(fair > 0 && ours > 0)) return "–";
  const times = fair / ours;
  return `${times >= 10 ? times.toFixed(0) : times.toPrecision(2)}×`;
}

// What is shown of a size, a site, a backend, a coding and a certificate: title and text.
const OF_SIZE = [
  ["Response", (size) => size.name],
  ["On the link", (size) => count(size.jobs)],
  ["Left to send", (size) => (size.remaining_bytes ? bytes(size.remaining_bytes) : "–")],
  ["Ended", (size) => count(size.ended)],
  ["Took", (size) => mean([size.ended, size.ours])],
  ["Fair sharing", (size) => mean([size.ended, size.fair])],
  ["Sooner by", (size) => ratio(size.fair, size.ours)],
];
const OF_SITE = [
  ["Site", (site) => site.name],
  ["Responses", (site) => count(site.ended)],
  ["Took", (site) => mean([site.ended, site.seconds])],
  ["Since the start", (site) => count(site.total)],
];
const OF_BACKEND = [
  ["Backend", (backend) => backend.address],
  ["State", (backend) => (backend.up ? "up" : "down")],
  ["Under way", (backend) => count(backend.outstanding)],
  ["Connections", (backend) => count(backend.connections_open)],
  ["Requests", (backend) => count(backend.requests_total)],
  ["Failed", (backend) => count(backend.failures_total)],
];
const OF_CODING = [
  ["Coding", (coding) => coding.coding],
  ["Of", (coding) => coding.what],
  ["Before", (coding) => bytes(coding.in_total)],
  ["After", (coding) => bytes(coding.out_total)],
  ["Less by", (coding) => `${Math.round(100 * (1 - coding.out_total / coding.in_total))} %`],
];
const OF_CERTIFICATE = [
  ["Certificate", (certificate) => certificate.name],
  ["From", (certificate) => (certificate.file ? "file" : "ACME")],
  ["Valid for", validFor],
  ["Renewal", renewal],
  ["OCSP", stapled],
  ["Attempts failed", (certificate) => (certificate.file ? "–" : count(certificate.failures))],
];

function validFor({ expires_in_seconds: left, is_late }) {
  return left > 0 && is_late ? `${days(left)}, ends soon` : days(left);
}

function renewal({ file, is_there, renewal_in_seconds: left }) {
  if (file) return "by hand";
  if (!is_there || !(left > 0)) return "under way";
  return `in ${days(left)}`;
}

// Whether the answer of a certificate's responder goes with it.
function stapled({ ocsp }) {
  if (!ocsp) return "no responder";
  return ocsp.stapled_for_seconds === null ? "no answer" : `stapled, ${days(ocsp.stapled_for_seconds)}`;
}

function days(seconds) {
  if (seconds === null || seconds === undefined) return "there is none yet";
  if (seconds <= 0) return "no longer";
  if (seconds < 2 * 3600) return `${Math.floor(seconds / 60)} minutes`;
  return seconds < 2 * 86400 ? `${Math.floor(seconds / 3600)} hours` : `${Math.floor(seconds / 86400)} days`;
}

// Bits a second between two samples.
const sentBetween = (from, to) => {
  const seconds = to.at_seconds - from.at_seconds;
  return seconds > 0 ? Math.max(0, 8 * (to.wire_bytes - from.wire_bytes) / seconds) : 0;
};

// Each sample says what was sent since the one before.
function sent(sample) {
  const index = samples.indexOf(sample);
  return index > 0 ? sentBetween(samples[index - 1], sample) : 0;
}

function showStatus(status) {
  const { link, server } = status;
  const aging = link.aging === null ? [] : [`aging ${link.aging}`];
  say("what", [status.listen.join(", "), [`policy ${link.policy}`, ...aging].join(", ")].join(" · "));
  say("version", `shortline ${status.version}, up ${time(Math.round(status.uptime_seconds) * 1e9)}`);
  say("waiting", count(link.jobs_waiting));
  const open = server.connections.open;
  say("waiting-note", `${count(link.jobs_sending)} send, ${count(link.jobs_blocked)} whose client takes nothing now · ${count(open)} connections`);
  showUplink(link);
  showRate(server.responses);
  showSizes(link, status.comparison);
  showSites(server.responses.by_site);
  showBackends(server.backends);
  showCompression(server.compressed);
  showCertificates((status.certificates && status.certificates.all) || []);
  showWarnings(status.warnings);
}

// What the classification of an uplink means (docs/uplink.md).
const STATES = {
  starting: "nothing is known yet, and nothing is held back",
  open: "no queue was seen, so nothing is held back",
  searching: "a queue stands here, and its rate is being measured",
  confident: "a queue stands here, and its rate was measured",
  yielding: "others fill the same queue, whatever is done here",
  local: "the queue is that of the machine's own interface",
  blind: "there is nothing to measure",
};

function showUplink(link) {
  const { rate_bps: rate, discovered: found, mode } = link;
  const [oldest, newest] = lately(10);
  const now = sentBetween(oldest, newest);
  say("uplink", rate ? bits(rate) : mode === "off" ? "off" : "no limit");
  say("uplink-note", `${bits(now)} sent${rate ? `, ${Math.round(100 * now / rate)} %` : ""}`);
  element("meter").style.width = `${rate ? Math.min(100, 100 * now / rate) : 0}%`;
  const device = link.device ? ` Its interface is ${link.device}.` : "";
  if (!found) {
    const how = { off: "Nothing is scheduled (--uplink off).", paced: `The rate of ${bits(rate)} is given.` }[mode];
    say("found", `${how || `Link mode ${mode}.`}${device}`);
    return;
  }
  const state = STATES[found.state] ? `${found.state}: ${STATES[found.state]}` : found.state;
  const estimate = found.estimate_bps ? ` Found: ${bits(found.estimate_bps)}, ${Math.round(100 * found.confidence)} % sure.` : "";
  const stated = found.stated_bps ? ` Stated by the system (${found.stated_by}): ${bits(found.stated_bps)}.` : "";
  const delay = found.shared_delay_ms ? ` Packets of most clients are queued for ${time(1e6 * found.shared_delay_ms)}.` : "";
  say("found", `The rate is found out while serving. State ${state}.${estimate}${stated}${delay}`
    + ` The state has changed ${count(found.changes_total)} times.${device}`);
}

function showRate(responses) {
  const [oldest, newest] = lately(10);
  const seconds = newest.at_seconds - oldest.at_seconds;
  say("rate", `${perSecond(seconds > 0 ? (newest.responses - oldest.responses) / seconds : 0)}/s`);
  const [, , , client, failed] = responses.by_status_class;
  say("rate-note", `${count(newest.responses)} in all · 4xx ${count(client)} · 5xx ${count(failed)} · broken off ${count(responses.incomplete_total)}`);
}

// Of the last five minutes, if the page's samples are that old.
function showSizes(link, comparison) {
  const [oldest, newest] = lately(WINDOW_SECONDS);
  const since = (index, part) => {
    const [from, to] = [oldest.compared[index], newest.compared[index]];
    return to ? to[part] - (from ? from[part] : 0) : 0;
  };
  const rows = link.size_classes.map((size, index) => ({
    ...size,
    ended: since(index, 0),
    ours: since(index, 1),
    fair: since(index, 2),
  }));
  element("sizes").replaceChildren(...rowsOf(OF_SIZE, rows));
  const sum = (part) => rows.reduce((all, row) => all + row[part], 0);
  say("gain", ratio(sum("fair"), sum("ours")));
  const minutes = "the last 5 minutes";
  say("gain-note", sum("ended")
    ? `${count(sum("ended"))} responses of ${minutes}: ${mean([sum("ended"), sum("ours")])} instead of ${mean([sum("ended"), sum("fair")])}`
    : comparison && link.rate_bps ? `no response on the uplink in ${minutes}` : "no rate is known: nobody waits here");
  say("sizes-note", "mean response times, 5 minutes; fair sharing among clients for the same requests");
}

function showSites(sites) {
  const used = sites.filter((site) => site.times.count);
  element("of-sites").hidden = used.length === 0;
  const [oldest] = lately(WINDOW_SECONDS);
  const before = new Map(oldest.sites.map(([name, number, seconds]) => [name, [number, seconds]]));
  const rows = used.map(({ name, times }) => {
    const [number, seconds] = before.get(name) || [0, 0];
    return { name, ended: times.count - number, seconds: times.seconds - seconds, total: times.count };
  });
  rows.sort((a, b) => b.total - a.total);
  element("sites").replaceChildren(...rowsOf(OF_SITE, rows));
  say("sites-note", `${rows.length} answered something; mean response times, 5 minutes`);
}

function showBackends(backends) {
  element("of-backends").hidden = backends.length === 0;
  element("backends").replaceChildren(...rowsOf(OF_BACKEND, backends));
}

// A coding that nobody has asked for is not shown.
function showCompression(compressed) {
  const used = compressed.filter((coding) => coding.in_total);
  element("of-compression").hidden = used.length === 0;
  element("codings").replaceChildren(...rowsOf(OF_CODING, used));
}

function showCertificates(certificates) {
  element("of-certificates").hidden = certificates.length === 0;
  const sooner = (certificate) => (certificate.expires_in_seconds === null ? -1 : certificate.expires_in_seconds);
  const sorted = [...certificates].sort((a, b) => sooner(a) - sooner(b));
  const rows = rowsOf(OF_CERTIFICATE, sorted);
  rows.forEach((row, index) => row.classList.toggle("late", sorted[index].is_late));
  element("certificates").replaceChildren(...rows);
  const late = sorted.filter((certificate) => certificate.is_late).length;
  const soon = late ? `, ${late} to see to` : "";
  const more = sorted.length > ROWS_MAX ? `, the first ${ROWS_MAX} shown` : "";
  say("certificates-note", `${sorted.length}, the first to end first${more}${soon}`);
}

function showWarnings(warnings) {
  element("no-warnings").hidden = warnings.length > 0;
  element("warnings").replaceChildren(...[...warnings].reverse().map((line) => {
    const item = document.createElement("li");
    item.textContent = line;
    return item;
  }));
}

function drawAll() {
  draw("sent-chart", "load", sent, (sample) => sample.rate_bps, "the uplink's rate", bits, 1e5);
  draw("queue-chart", "queue", (sample) => sample.waiting, () => null, "", (number) => count(Math.round(number)), 4);
}

const sampleOf = ({ uptime_seconds, link, server, comparison }) => ({
  at_seconds: uptime_seconds,
  rate_bps: link.rate_bps,
  wire_bytes: link.wire_bytes_total,
  waiting: link.jobs_waiting,
  responses: server.responses.by_status_class.reduce((all, number) => all + number, 0),
  compared: comparison ? comparison.by_size.map(({ ours, fair }) => [ours.count, ours.seconds, fair.seconds]) : [],
  sites: server.responses.by_site.map(({ name, times }) => [name, times.count, times.seconds]),
});

for (const [id, columns] of [["size", OF_SIZE], ["site", OF_SITE], ["backend", OF_BACKEND], ["coding", OF_CODING], ["certificate", OF_CERTIFICATE]]) {
  element(`${id}-columns`).replaceChildren(...headsOf(columns));
}
live("server", sampleOf, showStatus, drawAll);
