let sorting = { column: "spent", ascending: false };
let last = null;

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
  last = status;
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

const OF_CLIENT = [
  ["Id", (client) => client.id],
  ["State", (client) => client.state],
  ["For", (client) => time(client.state_seconds * 1e9)],
  ["User", (client) => client.user],
  ["Database", (client) => client.database],
  ["Application", (client) => client.application_name],
  ["Address", (client) => client.address || "unix"],
];

function showClients(clients) {
  element("clients-section").hidden = clients.length === 0;
  element("clients").replaceChildren(...rowsOf(OF_CLIENT, clients));
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
  const [oldest, newest] = lately(10);
  const seconds = newest.at_seconds - oldest.at_seconds;
  const rate = seconds > 0 ? (newest.completed - oldest.completed) / seconds : 0;
  say("rate", `${rate >= 100 ? Math.round(rate).toLocaleString("en") : rate.toFixed(1)}/s`);
  say("rate-note", `${count(newest.completed)} in all`);
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
  element("tenant-columns").replaceChildren(...headsOf(OF_TENANT));
  element("client-columns").replaceChildren(...headsOf(OF_CLIENT));
}

function drawAll() {
  draw("load-chart", "load", (sample) => sample.load_ns, (sample) => sample.capacity_ns, "capacity", time, 1e6);
  draw("queue-chart", "queue", (sample) => sample.waiting, () => null, "", (number) => count(Math.round(number)), 4);
}

const sampleOf = ({ uptime_seconds, admission }) => ({
  at_seconds: uptime_seconds,
  load_ns: admission.load_ns,
  capacity_ns: admission.capacity_ns,
  waiting: admission.waiting,
  running: admission.running,
  completed: admission.totals.completed,
});

showColumns();
live("gate", sampleOf, showStatus, drawAll);
