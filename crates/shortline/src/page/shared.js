"use strict";
// What the live pages of `serve` and `gate` have in common: figures as text, tables, charts over time, and asking once a second.
// The last five minutes at one sample a second; the newest is last.
const WINDOW_SECONDS = 300;
const EVERY_MS = 1000;
const ROWS_MAX = 200;
const samples = [];

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

// Rows of a table: for each column its title and its text, which is never read as HTML.
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

function headsOf(columns) {
  return columns.map(([title]) => {
    const head = document.createElement("th");
    head.scope = "col";
    head.textContent = title;
    return head;
  });
}

// The sample at the beginning of the last `seconds`, and the newest.
function lately(seconds) {
  const newest = samples[samples.length - 1];
  return [samples.find((sample) => sample.at_seconds >= newest.at_seconds - seconds), newest];
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

// A line over the last minutes: what it is called, its value of a sample, a limit and what that is called, the value as text, and
// the least top of the scale.
function draw(id, kind, value, limit, name, text, least) {
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
    parts.push(...limits(shown, limit, name, x, y));
  }
  chart.replaceChildren(...parts);
  chart.onpointermove = (event) => hover(chart, event, shown, x, y(0), top, value, limit, text);
  chart.onpointerleave = () => chart.querySelectorAll(".hover, .tip").forEach((part) => part.remove());
}

function limits(shown, limit, name, x, y) {
  const limited = shown.filter((sample) => limit(sample));
  if (!limited.length) return [];
  const points = limited.map((sample) => `${x(sample.at_seconds).toFixed(1)},${y(limit(sample)).toFixed(1)}`);
  const newest = limited[limited.length - 1];
  return [
    svg("polyline", { class: "limit", points: points.join(" ") }),
    svg("text", { class: "limit-name", x: x(newest.at_seconds), y: y(limit(newest)) - 5, "text-anchor": "end" }, name),
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

// Asking

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(5000) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

function remember(sample) {
  const previous = samples[samples.length - 1];
  if (previous && sample.at_seconds < previous.at_seconds) samples.length = 0; // restarted
  samples.push(sample);
  while (samples[0].at_seconds < sample.at_seconds - WINDOW_SECONDS) samples.shift();
}

// Asks for the history once and for the status every second. `who` does not answer, if nothing comes.
async function live(who, sampleOf, show, drawAll) {
  let asked = false;
  addEventListener("resize", drawAll);
  for (;;) {
    if (document.hidden) asked = false;
    else {
      try {
        if (!asked) {
          samples.splice(0, samples.length, ...await ask("history"));
          asked = true;
        }
        const status = await ask("status");
        remember(sampleOf(status));
        show(status);
        drawAll();
        element("live").className = "live on";
        say("live", "live");
      } catch (error) {
        element("live").className = "live off";
        say("live", `the ${who} does not answer; what is shown is old`);
        asked = false;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
}
