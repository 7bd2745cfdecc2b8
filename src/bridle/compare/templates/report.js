"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const { number, shortened } = bridlePage;
  const hidden = new Set(); // policies switched off
  const scales = data.charts.map((chart) => chart.y.scale);
  const drawn = new Set(); // charts that were in sight once
  let bounds = true;

  // ---- colours ----------------------------------------------------------------------------------------------------------------------

  function colours() {
    const style = getComputedStyle(root);
    const named = (name) => style.getPropertyValue(name).trim();
    return {
      ink: named("--ink"), soft: named("--soft"), grid: named("--grid"), line: named("--line"), surface: named("--surface"),
      policy: (i) => named("--p" + data.policies[i].colour),
    };
  }

  function faint(hex, opacity) {
    const part = (at) => parseInt(hex.slice(at, at + 2), 16);
    return `rgba(${part(1)},${part(3)},${part(5)},${opacity})`;
  }

  // ---- text -------------------------------------------------------------------------------------------------------------------------

  // Plotly reads a few tags and entities in its texts: a label must be shown as it is.
  const literal = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  function decade(power) {
    if (power >= -3 && power <= 4) return (10 ** power).toLocaleString("en", { maximumFractionDigits: 3 });
    return "10" + String(power).replace(/./g, (digit) => (digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)]));
  }

  // ---- scales -----------------------------------------------------------------------------------------------------------------------

  // Where a value lies on an axis, in the units of a linear one. On a symmetric logarithmic axis it is linear up to the threshold.
  function place(value, scale, threshold) {
    if (value === null || scale === "linear") return value;
    if (scale === "log") return value > 0 ? Math.log10(value) : null;
    const size = Math.abs(value) / threshold;
    return Math.sign(value) * (size <= 1 ? size : 1 + Math.log10(size));
  }

  function axis(title, scale, threshold, range, theme, crowded) {
    const made = {
      title: { text: title, font: { size: 12, color: theme.soft }, standoff: 8 }, range, zeroline: false, color: theme.soft, gridcolor: theme.grid,
      linecolor: theme.line, showline: true, ticks: "outside", ticklen: 4, tickcolor: theme.line, tickfont: { size: 11.5 }, automargin: true,
    };
    if (scale === "linear") return Object.assign(made, { tickformat: "~s", nticks: crowded ? 5 : 7, zeroline: range[0] < 0, zerolinecolor: theme.soft, zerolinewidth: 1 });
    const values = [];
    const texts = [];
    const add = (at, text) => {
      values.push(at);
      texts.push(text);
    };
    if (scale === "log") {
      const wide = range[1] - range[0];
      const every = Math.max(1, Math.ceil(wide / (crowded ? 6 : 9)));
      for (let power = Math.floor(range[0]); power <= Math.ceil(range[1]); power += 1) {
        if (power % every === 0) add(10 ** power, decade(power));
        if (wide < 1.6) for (const digit of [2, 5]) add(digit * 10 ** power, number(digit * 10 ** power));
      }
      return Object.assign(made, { type: "log", tickvals: values, ticktext: texts });
    }
    const base = Math.round(Math.log10(threshold));
    add(0, "0");
    const top = Math.max(Math.abs(range[0]), Math.abs(range[1]));
    const every = Math.max(1, Math.ceil((range[1] - range[0]) / (crowded ? 7 : 10)));
    for (let step = 1; step <= Math.ceil(top); step += every) {
      add(step, decade(base + step - 1));
      add(-step, "−" + decade(base + step - 1));
    }
    return Object.assign(made, { tickvals: values, ticktext: texts, zeroline: true, zerolinecolor: theme.soft, zerolinewidth: 1 });
  }

  // The range that shows the given values, in the units of the axis; a logarithmic one reaches at most six decades down.
  function rangeOf(values, scale, threshold) {
    const at = values.map((value) => place(value, scale, threshold)).filter((value) => value !== null && Number.isFinite(value));
    if (!at.length) return scale === "log" ? [0, 1] : [-1, 1];
    let low = Math.min(...at);
    let high = Math.max(...at);
    if (scale === "log") {
      low = Math.max(low, high - 6);
      const lacking = Math.max(0, 0.5 - (high - low)) / 2; // less than half a decade would have no ticks
      return [low - lacking - 0.05 * (high - low), high + lacking + 0.05 * (high - low)];
    }
    if (low === 0 && high === 0) return [-0.05, 1];
    const room = Math.max(0.06 * (high - low), 1e-9 + 0.02 * Math.abs(high));
    return [low === 0 ? -0.3 * room : low - room, high + room];
  }

  // ---- charts -----------------------------------------------------------------------------------------------------------------------

  const shown = (mark) => !hidden.has(mark.policy);
  const superscript = (base, exponent) => `${base}<sup>${exponent.toFixed(2)}</sup>`;

  // Texts that end lines must not lie on each other: those that would are stacked around the middle of where they belong.
  function spread(labels, room, height) {
    labels.sort((one, other) => one.at - other.at);
    const stacks = [];
    for (const label of labels) {
      let stack = { members: [label], middle: label.at };
      while (stacks.length) {
        const below = stacks[stacks.length - 1];
        if (stack.middle - below.middle >= (room * (stack.members.length + below.members.length)) / 2) break;
        stacks.pop();
        const members = [...below.members, ...stack.members];
        stack = { members, middle: (below.middle * below.members.length + stack.middle * stack.members.length) / members.length };
      }
      const half = (room * (stack.members.length - 1)) / 2;
      stack.middle = Math.max(half, Math.min(height - half, stack.middle));
      stacks.push(stack);
    }
    for (const { members, middle } of stacks) members.forEach((label, i) => { label.at = middle + room * (i - (members.length - 1) / 2); });
  }

  function lines(chart, scale, theme, size) {
    const growth = chart.kind.startsWith("growth");
    const letter = growth ? "T" : "t";
    const what = chart.kind.endsWith("ccv") ? "CCV" : "regret";
    const threshold = chart.y.threshold;
    const visible = chart.marks.filter(shown);
    const told = (line) => line.y.map((value, i) => (Math.abs(value) > 1e-9 * line.x[i] ? value : 0)); // what is rounding needs no room
    const seen = visible.flatMap((line) => [...told(line), ...(bounds ? line.bound : [])]);
    const range = rangeOf(seen.length ? seen : chart.marks.flatMap(told), scale, threshold);
    const floor = scale === "log" ? 10 ** (range[0] - 1) : null; // a band that reaches zero goes down to the frame
    const put = (value) => (scale === "symlog" ? place(value, scale, threshold) : value);
    const traces = [];
    const first = Math.min(...chart.marks.map((line) => line.x[0]));
    const last = Math.max(...chart.marks.map((line) => line.x[line.x.length - 1]));
    for (const line of chart.marks) {
      const look = data.policies[line.policy];
      const colour = theme.policy(line.policy);
      const common = { visible: shown(line), showlegend: false, name: literal(line.label) };
      const tag = (part) => ({ policy: line.policy, part });
      const banded = line.x.map((x, i) => [x, line.low[i], line.high[i]]).filter(([, low, high]) => low !== null && high !== null && (scale !== "log" || high > 0));
      if (!growth && banded.some(([, low, high]) => high > low)) {
        const down = banded.map(([, low]) => put(floor === null ? low : Math.max(low, floor)));
        traces.push({
          ...common, meta: tag("band"), x: [...banded.map(([x]) => x), ...banded.map(([x]) => x).reverse()],
          y: [...banded.map(([, , high]) => put(high)), ...down.reverse()], fill: "toself", fillcolor: faint(colour, 0.14), line: { width: 0 },
          mode: "lines", hoverinfo: "skip",
        });
      }
      if (line.bound.some((value) => value !== null)) {
        traces.push({
          ...common, meta: tag("bound"), visible: shown(line) && bounds, x: line.x, y: line.bound.map(put), customdata: line.bound, mode: "lines",
          line: { color: faint(colour, 0.75), width: 1.3, dash: "dash" }, hoverinfo: "skip",
        });
      }
      if (line.law !== null) {
        const ends = [line.law.first, line.law.last];
        const steps = Array.from({ length: 17 }, (_, i) => ends[0] * (ends[1] / ends[0]) ** (i / 16));
        const fitted = steps.map((x) => line.law.factor * x ** line.law.exponent);
        traces.push({
          ...common, meta: tag("fit"), x: steps, y: fitted.map(put), customdata: fitted, mode: "lines", line: { color: theme.ink, width: 1, dash: "dot" },
          opacity: 0.75, hoverinfo: "skip",
        });
      }
      const spans = line.y.map((value, i) => (line.high[i] > line.low[i] ? ` (${number(line.low[i])} to ${number(line.high[i])})` : ""));
      const allowed = line.bound.map((value) => (value === null ? "" : `, bound ${number(value)}`));
      const growing = line.law === null ? "" : `<br>grows like ${superscript(letter, line.law.exponent)}`;
      const error = growth ? { type: "data", symmetric: false, array: line.y.map((y, i) => put(line.high[i]) - put(y)), arrayminus: line.y.map((y, i) => put(y) - put(line.low[i])), thickness: 1, width: 3, color: colour } : undefined;
      traces.push({
        ...common, meta: tag("main"), x: line.x, y: line.y.map(put), customdata: line.y, mode: "lines+markers", connectgaps: false, error_y: error,
        line: { color: colour, width: 2.1, dash: look.dash }, marker: { color: colour, size: 7, symbol: look.symbol, maxdisplayed: growth ? 0 : 9, line: { color: theme.surface, width: 1 } },
        hoverinfo: "text", hoverlabel: { align: "left" },
        hovertext: line.y.map((value, i) => {
          const who = `<b>${literal(shortened(line.label, 44))}</b>`;
          if (size.unified) return `${who} ${number(value)}${allowed[i]}`;
          return `${letter} = ${line.x[i].toLocaleString("en")}<br>${who}<br>${what} ${number(value)}${spans[i]}${allowed[i]}${growing}`;
        }),
      });
    }
    const inner = size.height - 30 - 52;
    const ended = visible.filter((line) => line.law !== null).map((line) => {
      const at = place(line.y[line.y.length - 1], scale, threshold);
      return { line, at: ((at - range[0]) / (range[1] - range[0])) * inner };
    });
    spread(ended, Math.min(14, inner / ended.length), inner);
    const annotations = ended.map(({ line, at }) => ({
      text: superscript(letter, line.law.exponent), xref: "paper", yref: "paper", x: 1, y: at / inner, xanchor: "left", yanchor: "middle", xshift: 4, showarrow: false,
      font: { size: 12, color: theme.policy(line.policy) },
    }));
    const edge = Math.log10(last / first) * 0.02 || 0.05;
    return {
      traces,
      layout: {
        xaxis: { ...axis(chart.x.title, "log", 1, [Math.log10(first) - edge, Math.log10(last) + edge], theme, size.narrow), unifiedhovertitle: { text: `${letter} = %{x:,d}` } },
        yaxis: axis(chart.y.title, scale, threshold, range, theme, size.narrow), annotations, hovermode: size.unified ? "x unified" : "closest",
        margin: { l: 58, r: ended.length ? 48 : 14, t: 30, b: 52 },
      },
    };
  }

  function points(chart, scale, theme, size) {
    const put = (value, on) => (on.scale === "symlog" ? place(value, on.scale, on.threshold) : value);
    const all = chart.marks.filter(shown).length ? chart.marks.filter(shown) : chart.marks;
    const xs = all.flatMap((point) => [point.x, ...point.seeds.map((pair) => pair[0])]);
    const ys = all.flatMap((point) => [point.y, ...point.seeds.map((pair) => pair[1])]);
    const traces = [];
    const front = all.filter((point) => point.pareto && shown(point)).sort((one, other) => one.x - other.x || other.y - one.y);
    if (front.length > 1) {
      traces.push({
        x: front.map((point) => put(point.x, chart.x)), y: front.map((point) => put(point.y, chart.y)), mode: "lines", line: { color: theme.soft, width: 1, dash: "dot", shape: "hv" },
        hoverinfo: "skip", showlegend: false, meta: { policy: null, part: "front" },
      });
    }
    for (const point of chart.marks) {
      const colour = theme.policy(point.policy);
      const common = { visible: shown(point), showlegend: false, name: literal(point.label) };
      const look = data.policies[point.policy];
      traces.push({
        ...common, meta: { policy: point.policy, part: "seeds" }, x: point.seeds.map((pair) => put(pair[0], chart.x)), y: point.seeds.map((pair) => put(pair[1], chart.y)),
        customdata: point.seeds, mode: "markers", marker: { color: colour, size: 5, opacity: 0.45, symbol: look.symbol }, hoverinfo: "skip",
      });
    }
    for (const point of [...chart.marks].reverse()) {
      const colour = theme.policy(point.policy);
      const band = (span) => (span[1] > span[0] ? ` (${number(span[0])} to ${number(span[1])})` : "");
      traces.push({
        visible: shown(point), showlegend: false, name: literal(point.label), meta: { policy: point.policy, part: "main" }, x: [put(point.x, chart.x)], y: [put(point.y, chart.y)],
        customdata: [[point.x, point.y]], mode: "markers+text", text: [String(point.rank)], textposition: "middle center", textfont: { color: theme.surface, size: 10.5, weight: 700 },
        marker: { color: colour, size: 20, line: { color: point.pareto ? theme.ink : theme.surface, width: point.pareto ? 2 : 1 } },
        hoverinfo: "text", hoverlabel: { align: "left" },
        hovertext: [`<b>${literal(shortened(point.label, 44))}</b>, rank ${point.rank}${point.pareto ? ", on the front" : ""}<br>regret ${number(point.y)}${band(point.y_band)}<br>CCV ${number(point.x)}${band(point.x_band)}`],
      });
    }
    return {
      traces,
      layout: {
        xaxis: axis(chart.x.title, chart.x.scale, chart.x.threshold, padded(rangeOf(xs, chart.x.scale, chart.x.threshold)), theme, size.narrow),
        yaxis: axis(chart.y.title, chart.y.scale, chart.y.threshold, padded(rangeOf(ys, chart.y.scale, chart.y.threshold)), theme, size.narrow),
        hovermode: "closest", margin: { l: 58, r: 14, t: 30, b: 52 },
      },
    };
  }

  // Room for markers at the edge.
  const padded = ([low, high]) => [low - 0.04 * (high - low), high + 0.04 * (high - low)];

  function bars(chart, scale, theme, size) {
    const visible = chart.marks.filter(shown);
    const thick = Math.min(0.66, (26 * visible.length) / (size.height - 82));
    const traces = chart.marks.map((bar) => {
      const at = visible.indexOf(bar);
      const text = Number(bar.value.toPrecision(3)).toLocaleString("en");
      return {
        type: "bar", orientation: "h", visible: shown(bar), showlegend: false, name: literal(bar.label), meta: { policy: bar.policy, part: "main" }, x: [bar.value], y: [at], width: thick,
        customdata: [bar.value], marker: { color: theme.policy(bar.policy) }, text: [text], textposition: "outside", cliponaxis: false, textfont: { color: theme.ink, size: 11.5 },
        hoverinfo: "text", hovertext: [`<b>${literal(shortened(bar.label, 44))}</b><br>${number(bar.value)} µs a round${bar.high > bar.low ? ` (${number(bar.low)} to ${number(bar.high)})` : ""}`],
      };
    });
    const top = Math.max(...(visible.length ? visible : chart.marks).map((bar) => bar.value));
    const base = axis(chart.x.title, "linear", 1, [0, 1.16 * top], theme, size.narrow);
    return {
      traces,
      layout: {
        xaxis: base, barmode: "overlay", hovermode: "closest", margin: { l: 10, r: 20, t: 30, b: 52 },
        yaxis: { range: [visible.length - 0.4, -0.6], tickvals: visible.map((_, i) => i), ticktext: visible.map((bar) => literal(shortened(bar.label, size.narrow ? 20 : 34))), automargin: true, color: theme.ink, tickfont: { size: 11.5 }, showgrid: false, zeroline: false },
      },
    };
  }

  // A finger on a chart scrolls the page: it must not take hold of an axis.
  const touch = window.matchMedia("(pointer: coarse)");

  const makers = { regret: lines, ccv: lines, "growth-regret": lines, "growth-ccv": lines, tradeoff: points, pace: bars };

  function draw(i) {
    const chart = data.charts[i];
    const box = document.getElementById("plot-" + i);
    if (!chart.marks.length || !box.offsetParent) return;
    const theme = colours();
    const narrow = box.clientWidth < 520;
    const visible = chart.marks.filter(shown).length;
    const height = chart.kind === "pace" ? Math.max(narrow ? 150 : 400, 90 + 28 * visible) : narrow ? 340 : 400;
    const { traces, layout } = makers[chart.kind](chart, scales[i], theme, { narrow, height, unified: !narrow && visible <= 6 });
    for (const one of [layout.xaxis, layout.yaxis]) one.fixedrange = touch.matches;
    Plotly.react(box, traces, {
      ...layout, height, autosize: true, dragmode: false, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false,
      font: { family: getComputedStyle(document.body).fontFamily, color: theme.ink, size: 12.5 },
      hoverlabel: { bgcolor: theme.surface, bordercolor: theme.line, font: { color: theme.ink, size: 12 } }, modebar: { color: theme.soft, activecolor: theme.ink, bgcolor: "rgba(0,0,0,0)" },
    }, { responsive: true, displaylogo: false, scrollZoom: false, displayModeBar: narrow || touch.matches ? false : "hover", modeBarButtons: [["zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]] });
    box.dataset.drawn = "true";
  }

  // ---- when charts are drawn --------------------------------------------------------------------------------------------------------

  const boxes = data.charts.map((_, i) => document.getElementById("plot-" + i));
  const near = new Set(); // charts in sight, or nearly
  let later = 0;

  function meet(i) {
    if (drawn.has(i)) return;
    drawn.add(i);
    draw(i);
  }

  // What is in sight changes at once, the rest of a long page bit by bit.
  function redraw() {
    window.clearTimeout(later);
    const waiting = [...drawn].filter((i) => !near.has(i));
    near.forEach(draw);
    const next = () => {
      if (!waiting.length) {
        delete root.dataset.busy;
        return;
      }
      draw(waiting.shift());
      later = window.setTimeout(next);
    };
    root.dataset.busy = "true";
    later = window.setTimeout(next);
  }

  // A chart is drawn when it first comes near the window, so that a page of a hundred opens at once.
  if ("IntersectionObserver" in window) {
    const watcher = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const i = Number(entry.target.id.slice(5));
        if (!entry.isIntersecting) {
          near.delete(i);
          continue;
        }
        near.add(i);
        meet(i);
      }
    }, { rootMargin: "400px" });
    boxes.forEach((box) => watcher.observe(box));
  } else {
    boxes.forEach((_, i) => meet(i));
  }
  window.addEventListener("beforeprint", () => boxes.forEach((_, i) => meet(i)));

  // ---- what readers can switch ------------------------------------------------------------------------------------------------------

  const chips = [...document.querySelectorAll(".chip")];

  function show(policy, on) {
    if (on) hidden.delete(policy);
    else hidden.add(policy);
    for (const chip of chips) if (Number(chip.dataset.policy) === policy) chip.setAttribute("aria-pressed", String(on));
    for (const line of document.querySelectorAll(`tr[data-policy="${policy}"]`)) line.classList.toggle("off", !on);
  }

  for (const chip of chips) {
    chip.addEventListener("click", () => {
      show(Number(chip.dataset.policy), chip.getAttribute("aria-pressed") !== "true");
      redraw();
    });
  }
  for (const [id, on] of [["all", true], ["none", false]]) {
    document.getElementById(id).addEventListener("click", () => {
      data.policies.forEach((_, policy) => show(policy, on));
      redraw();
    });
  }
  document.getElementById("bounds").addEventListener("click", (event) => {
    bounds = !bounds;
    event.currentTarget.setAttribute("aria-checked", String(bounds));
    redraw();
  });
  for (const select of document.querySelectorAll("select[data-chart]")) {
    select.addEventListener("change", () => {
      scales[Number(select.dataset.chart)] = select.value;
      draw(Number(select.dataset.chart));
    });
  }
  for (const tabs of document.querySelectorAll(".tabs")) {
    const choose = (horizon) => {
      for (const button of tabs.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.horizon === horizon));
      for (const part of tabs.parentElement.querySelectorAll(".horizon")) part.hidden = part.dataset.horizon !== horizon;
      for (const i of drawn) if (tabs.parentElement.contains(boxes[i])) draw(i); // what changed while it was out of sight
    };
    for (const button of tabs.querySelectorAll("button")) button.addEventListener("click", () => choose(button.dataset.horizon));
    choose(tabs.querySelector("button[aria-pressed=true]").dataset.horizon);
  }
  bridlePage.followTheme(redraw);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return; // a phone's address bar comes and goes
    width = window.innerWidth;
    redraw();
  });
})();
