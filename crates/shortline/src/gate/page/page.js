"use strict";
// The last five minutes at one sample a second; the newest is last.
const WINDOW_SECONDS = 300;
const EVERY_MS = 1000;
const ROWS_MAX = 200;
const samples = [];
let sorting = { column: "spent", ascending: false };
let last = null;

const element = (id) => document.getElementById(id);
const say = (id, text) => { const at = element(id); if (at.textContent !== text) at.textContent = text; };

function time(ns) {
  if (ns === null || ns === undefined) return "–";
  if (ns === 0) return "0";
  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const [unit, name] = units.find(([unit]) => ns >= unit) || units[3];
  const value = ns / unit;
  return `${value >= 100 ? value.toFixed(0) : value.toPrecision(3).replace(/\.?0+$/, "")} ${name}`;
}

function count(number) {
  if (number >= 1e9) return `${(number / 1e9).toFixed(1)}G`;
  if (number >= 1e6) return `${(number / 1e6).toFixed(1)}M`;
  return number.toLocaleString("en");
}

// Of those that still wait, too.
const longest = (type) => Math.max(type.waited_ns_max, type.oldest_wait_ns);

// What is shown of a type: key, title, value to sort by, text.
const COLUMNS = [
  ["name", "Type", (type) => type.name, (type) => type.name],
  ["estimate", "Estimate", (type) => type.estimate_ns, (type) => time(type.estimate_ns)],
  ["waiting", "Waiting", (type) => type.waiting, (type) => count(type.waiting)],
  ["running", "Running", (type) => type.running, (type) => count(type.running)],
  ["completed", "Completed", (type) => type.completed, (type) => count(type.completed)],
  ["spent", "Time in all", (type) => type.completed * type.estimate_ns, (type) => time(type.completed * type.estimate_ns)],
  ["wait", "Mean wait", (type) => (type.admitted ? type.waited_ns_sum / type.admitted : 0), (type) => time(type.admitted ? type.waited_ns_sum / type.admitted : 0)],
  ["oldest", "Waits now for", (type) => type.oldest_wait_ns, (type) => time(type.oldest_wait_ns)],
  ["longest", "Longest wait", longest, (type) => time(longest(type))],
  ["lost", "Refused, left, failed", (type) => type.refused + type.withdrawn + type.failed, (type) => `${count(type.refused)}, ${count(type.withdrawn)}, ${count(type.failed)}`],
];

// The same of a tenant: title and text.
const OF_TENANT = [
  ["Tenant", (tenant) => tenant.name],
  ["Weight", (tenant) => count(tenant.weight)],
  ["Served", (tenant) => time(tenant.served_ns)],
  ["Load", (tenant) => time(tenant.load_ns)],
  ["Running, paused", (tenant) => `${count(tenant.active)}, ${count(tenant.running - tenant.active)}`],
  ["Waiting", (tenant) => count(tenant.waiting)],
  ["Mean wait", (tenant) => time(tenant.admitted ? tenant.waited_ns_sum / tenant.admitted : 0)],
  ["Connections", (tenant) => count(tenant.connections)],
  ["Refused", (tenant) => count(tenant.refused + tenant.connections_refused)],
];

function showStatus(status) {
  const { settings, admission, connections, note } = status;
  const order = [settings.policy, ...(settings.aging === null ? [] : [`aging ${settings.aging}`]),
    ...(settings.oldest_share === null ? [] : [`${settings.oldest_share} for the oldest`])].join(", ");
  say("what", `${settings.kind} · ${settings.listen.join(", ")} → ${settings.upstream} · ${order}`);
  say("version", `shortline ${status.version}, up ${time(Math.round(status.uptime_seconds) * 1e9)}`);
  say("waiting", count(admission.waiting));
  const { oldest } = admission;
  say("waiting-note", oldest
    ? `the oldest for ${time(oldest.waited_ns)} of ${time(settings.wait_max_seconds * 1e9)} at most: ${oldest.name}`
    : `of ${count(settings.queue_max)} that may, ${time(settings.wait_max_seconds * 1e9)} at most`);
  say("running", count(admission.running));
  const paused = admission.running - admission.active;
  const open = [`${count(connections.open)} connections`];
  say("running-note", [...(paused ? [`${count(paused)} paused`] : []), ...open].join(" · "));
  showLoad(admission);
  showRate();
  showCapacity(settings, admission, note);
  showPause(status.paused);
  showClients(status.busy_clients);
  showTenants(admission.tenants);
  showTypes(admission.types);
}

function showPause({ all, databases, disabled }) {
  const held = [...(all ? ["the gate"] : []), ...databases];
  if (held.length) say("waiting-note", `paused: ${held.join(", ")}`);
  else if (disabled.length) say("waiting-note", `no new clients: ${disabled.join(", ")}`);
}

// By id, state, time, and the client's own words, which are never read as HTML.
function showClients(clients) {
  element("clients-section").hidden = clients.length === 0;
  const rows = clients.map((client) => {
    const row = document.createElement("tr");
    const cells = [client.id, client.state, time(client.state_seconds * 1e9), client.user, client.database,
      client.application_name, client.address || "unix"];
    for (const text of cells) row.appendChild(document.createElement("td")).textContent = text;
    return row;
  });
  element("clients").replaceChildren(...rows);
}

function showLoad(admission) {
  const { load_ns: load, capacity_ns: capacity } = admission;
  const share = capacity ? load / capacity : 0;
  say("load", capacity ? `${Math.round(100 * share)} %` : time(load));
  const none = admission.capacity_state.mode === "auto" ? "no capacity is known" : "no limit: nobody waits";
  say("load-note", capacity ? `${time(load)} of ${time(capacity)}` : none);
  element("meter").style.width = `${Math.min(100, 100 * share)}%`;
}

function showRate() {
  const newest = samples[samples.length - 1];
  const oldest = samples.find((sample) => newest && sample.at_seconds >= newest.at_seconds - 10);
  const seconds = newest && oldest ? newest.at_seconds - oldest.at_seconds : 0;
  const rate = seconds > 0 ? (newest.completed - oldest.completed) / seconds : 0;
  say("rate", `${rate >= 100 ? Math.round(rate).toLocaleString("en") : rate.toFixed(1)}/s`);
  say("rate-note", `${newest ? count(newest.completed) : 0} in all`);
}

// Why a capacity that is found by itself is what it is.
const REASONS = {
  starting: "nothing has been measured yet",
  rising: "it doubles as long as that lets the backend do more",
  falling: "it is halved as long as that lets the backend do no less",
  nobody_waits: "nobody waits, so another capacity would change nothing",
  more_is_better: "the backend does more at a larger one",
  less_is_better: "the backend does more at a smaller one",
  at_the_top: "near the top of what the backend does, as far as can be told",
  backend_changed: "the backend is not what it was: learning anew",
  not_known: "at no load that was seen the backend did less than at a smaller one",
};

const STAGES = {
  learning: "to learn what each type takes",
  settling: "waiting for what ran before to end",
  measuring: "measuring",
  load_too_small: "the load does not fill it: run more",
};

function calibrated({ stage, trials, best }) {
  const found = best ? `${best.work_rate.toFixed(2)} s of work a second at ${time(best.capacity_ns)}` : "nothing yet";
  return stage === "over"
    ? `found by calibration in ${trials} trials: ${found}.`
    : `tried by calibration (${STAGES[stage] || stage}); best of ${trials} trials: ${found}.`;
}

// That the gate has opened up is in the note.
function opened(opening) {
  if (!opening) return "";
  const trying = opening.stage === "trying" ? " A higher limit is tried in turns just now." : "";
  const tried = opening.trials
    ? ` ${count(opening.trials)} trials of a higher limit, ${count(opening.openings)} of them did clearly more.` : "";
  return trying + tried;
}

function showCapacity(settings, admission, note) {
  const { capacity_state: state, capacity_ns: capacity, totals } = admission;
  const unknown = state.reason === "not_known";
  const now = capacity !== null ? time(capacity) : unknown ? "Not known" : "No limit";
  const set = admission.opening ? admission.opening.closed_ns : capacity;
  const fixed = capacity > set ? `above the ${time(set)} of --capacity.` : "fixed by --capacity.";
  let why = { off: "off: everything is admitted at once.", fixed }[state.mode];
  if (state.mode === "auto") {
    const alike = state.each_ns ? `${Math.max(1, Math.round(capacity / state.each_ns))} requests at once, ` : "";
    why = `${alike}found continuously: ${REASONS[state.reason] || state.reason}. `
      + `Measured ${count(state.measurements)} times, changes of the backend noticed: ${count(state.changes)}; `
      + `services take ${admission.slowdown.toFixed(2)} times as long as alone.`;
  }
  if (state.mode === "calibrate") why = calibrated(state);
  const would = unknown ? "as far as is known nobody would have" : `${count(totals.would_wait)} requests would have`;
  const dry = settings.dry_run ? ` Dry run: nobody waits; ${would}.` : "";
  const lost = totals.refused_full + totals.refused_shed + totals.withdrawn;
  const refused = lost ? ` ${count(totals.refused_full)} refused for a full queue, ${count(totals.refused_shed)} shed, `
    + `${count(totals.withdrawn)} went away while they waited.` : "";
  const escaped = totals.escaped ? ` ${count(totals.escaped)} let in because everything stood still.` : "";
  const tried = state.mode === "calibrate" && state.stage === "learning" ? "One request at a time" : now;
  const quiet = note ? ` ${note[0].toUpperCase()}${note.slice(1)}.` : "";
  say("capacity", `${tried}, ${why}${opened(admission.opening)}${quiet}${dry}${refused}${escaped}`);
}

// Where there is but one, there is nothing to see.
function showTenants(tenants) {
  element("of-tenants").hidden = tenants.length < 2;
  const seen = [...tenants].sort((a, b) => b.served_ns - a.served_ns);
  say("tenants-note", `${seen.length}, by what was done for them${seen.length > ROWS_MAX ? `, the first ${ROWS_MAX} shown` : ""}`);
  element("tenants").replaceChildren(...rowsOf(OF_TENANT, seen));
}

function rowsOf(columns, all) {
  return all.slice(0, ROWS_MAX).map((each) => {
    const row = document.createElement("tr");
    for (const [title, text] of columns) {
      const cell = row.insertCell();
      cell.textContent = text(each);
      cell.dataset.name = title;
    }
    return row;
  });
}

function showTypes(types) {
  const seen = types.filter((type) => type.admitted || type.waiting || type.running || type.refused);
  const by = COLUMNS.find(([key]) => key === sorting.column)[2];
  const direction = sorting.ascending ? 1 : -1;
  seen.sort((a, b) => (by(a) < by(b) ? -direction : by(a) > by(b) ? direction : 0));
  const more = seen.length > ROWS_MAX ? `, the first ${ROWS_MAX} shown` : "";
  say("types-note", `${seen.length} seen${more}`);
  element("types").replaceChildren(...rowsOf(COLUMNS.map(([, title, , text]) => [title, text]), seen));
}

function showColumns() {
  const heads = COLUMNS.map(([key, title]) => {
    const head = document.createElement("th");
    head.scope = "col";
    if (key === sorting.column) head.ariaSort = sorting.ascending ? "ascending" : "descending";
    const button = document.createElement("button");
    button.textContent = title;
    button.onclick = () => {
      sorting = { column: key, ascending: sorting.column === key ? !sorting.ascending : key === "name" };
      showColumns();
      if (last) showTypes(last.admission.types);
    };
    head.append(button);
    return head;
  });
  element("columns").replaceChildren(...heads);
  element("tenant-columns").replaceChildren(...OF_TENANT.map(([title]) => {
    const head = document.createElement("th");
    head.scope = "col";
    head.textContent = title;
    return head;
  }));
}

// Charts

function svg(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// A round number not below `most`.
function rounded(most) {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((step) => step * power).find((round) => round >= most);
}

function draw(id, kind, value, limit, text, least) {
  const chart = element(id);
  const { width, height } = chart.getBoundingClientRect();
  if (!width) return;
  const [left, right, top, bottom] = [56, 8, 14, 20];
  const now = samples.length ? samples[samples.length - 1].at_seconds : 0;
  const shown = samples.filter((sample) => sample.at_seconds >= now - WINDOW_SECONDS);
  const most = rounded(Math.max(least, ...shown.map((sample) => Math.max(value(sample), limit(sample) || 0))));
  const x = (at) => left + (1 - (now - at) / WINDOW_SECONDS) * (width - left - right);
  const y = (of) => height - bottom - (of / most) * (height - top - bottom);
  const parts = [];
  for (const share of [0, 0.5, 1]) {
    parts.push(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(share * most), y2: y(share * most) }));
    // There is no half of a request.
    if (share !== 0.5 || kind === "load" || most % 2 === 0) {
      parts.push(svg("text", { x: left - 6, y: y(share * most) + 4, "text-anchor": "end" }, text(share * most)));
    }
  }
  for (const minutes of width < 480 ? [5, 3, 1] : [5, 4, 3, 2, 1]) {
    parts.push(svg("text", { x: x(now - minutes * 60), y: height - 4, "text-anchor": minutes === 5 ? "start" : "middle" }, `-${minutes} min`));
  }
  parts.push(svg("text", { x: width - right, y: height - 4, "text-anchor": "end" }, "now"));
  if (shown.length) {
    const line = shown.map((sample) => `${x(sample.at_seconds).toFixed(1)},${y(value(sample)).toFixed(1)}`);
    const [first, newest] = [x(shown[0].at_seconds), x(now)];
    parts.push(svg("polygon", { class: `${kind}-area`, points: `${first},${y(0)} ${line.join(" ")} ${newest},${y(0)}` }));
    parts.push(svg("polyline", { class: `${kind}-line`, points: line.join(" ") }));
    parts.push(...limits(shown, limit, x, y));
  }
  chart.replaceChildren(...parts);
  chart.onpointermove = (event) => hover(chart, event, shown, x, y(0), top, value, limit, text);
  chart.onpointerleave = () => chart.querySelectorAll(".hover, .tip").forEach((part) => part.remove());
}

function limits(shown, limit, x, y) {
  const limited = shown.filter((sample) => limit(sample));
  if (!limited.length) return [];
  const points = limited.map((sample) => `${x(sample.at_seconds).toFixed(1)},${y(limit(sample)).toFixed(1)}`);
  const newest = limited[limited.length - 1];
  return [
    svg("polyline", { class: "limit", points: points.join(" ") }),
    svg("text", { class: "limit-name", x: x(newest.at_seconds), y: y(limit(newest)) - 5, "text-anchor": "end" }, "capacity"),
  ];
}

function hover(chart, event, shown, x, base, top, value, limit, text) {
  chart.onpointerleave();
  const box = chart.getBoundingClientRect();
  const at = event.clientX - box.left;
  const nearest = shown.reduce((best, sample) =>
    (!best || Math.abs(x(sample.at_seconds) - at) < Math.abs(x(best.at_seconds) - at) ? sample : best), null);
  if (!nearest) return;
  const where = x(nearest.at_seconds);
  const words = text(value(nearest)) + (limit(nearest) ? ` of ${text(limit(nearest))}` : "");
  const side = where > box.width / 2 ? ["end", -6] : ["start", 6];
  chart.append(
    svg("line", { class: "hover", x1: where, x2: where, y1: top, y2: base }),
    svg("text", { class: "tip", x: where + side[1], y: top + 10, "text-anchor": side[0] }, words),
  );
}

function drawAll() {
  draw("load-chart", "load", (sample) => sample.load_ns, (sample) => sample.capacity_ns, time, 1e6);
  draw("queue-chart", "queue", (sample) => sample.waiting, () => null, (number) => count(Math.round(number)), 4);
}

// Asking

function remember(status) {
  const { admission } = status;
  const previous = samples[samples.length - 1];
  if (previous && status.uptime_seconds < previous.at_seconds) samples.length = 0; // restarted
  samples.push({
    at_seconds: status.uptime_seconds,
    load_ns: admission.load_ns,
    capacity_ns: admission.capacity_ns,
    waiting: admission.waiting,
    running: admission.running,
    completed: admission.totals.completed,
  });
  while (samples[0].at_seconds < status.uptime_seconds - WINDOW_SECONDS) samples.shift();
}

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(5000) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

let asked = false;
async function refresh() {
  try {
    if (!asked) {
      samples.splice(0, samples.length, ...await ask("history"));
      asked = true;
    }
    last = await ask("status");
    remember(last);
    showStatus(last);
    drawAll();
    element("live").className = "live on";
    say("live", "live");
  } catch (error) {
    element("live").className = "live off";
    say("live", "the gate does not answer; what is shown is old");
    asked = false;
  }
}

async function run() {
  showColumns();
  for (;;) {
    if (!document.hidden) await refresh();
    else asked = false;
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
}

addEventListener("resize", drawAll);
run();
