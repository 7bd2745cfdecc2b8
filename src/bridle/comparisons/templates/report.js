"use strict";
// The page is complete without this script. It shows values under the pointer and the arrow keys, hides policies, and changes scales.
(function () {
  const { number, shortened } = bridlePage;
  const root = document.documentElement;

  const read = (text) => (text ? text.split(",").map((part) => (part === "" ? null : Number(part))) : []);
  const readOf = (group, name) => read(group.dataset[name] ?? group.closest(".area").dataset[name]); // what all lines share stands once
  const areaOf = (select) => document.querySelector(`#plot-${select.dataset.chart} .area`);

  // ---- another scale for the vertical axis ------------------------------------------------------------------------------------------

  // Where a value lies, from 0 at the bottom to 1 at the top: `placed` and `PageScale.at` of bridle.showing.scales.
  function heightOn(kind, scale) {
    const placed = (value) => {
      if (kind === "linear") return value;
      if (kind === "log") return value > 0 ? Math.log10(value) : null;
      const size = Math.abs(value) / scale.threshold;
      return Math.sign(value) * (size <= 1 ? size : 1 + Math.log10(size));
    };
    return (value) => {
      const place = value === null ? null : placed(value);
      return place === null ? null : (place - scale.low) / (scale.high - scale.low);
    };
  }

  const down = (at) => Math.round(1000 * (1 - Math.min(Math.max(at, -2), 3)));

  function path(across, heights) {
    let broken = true;
    let drawn = "";
    across.forEach((at, i) => {
      if (heights[i] === null || heights[i] === undefined) {
        broken = true;
        return;
      }
      drawn += `${broken ? "M" : " "}${at} ${down(heights[i])}`;
      broken = false;
    });
    return drawn;
  }

  function rescale(area, kind) {
    const scale = JSON.parse(area.dataset.scales)[kind];
    const height = heightOn(kind, scale);
    area.dataset.scale = kind;
    const tick = ([at, text]) => `<line class="${text === "0" ? "zero" : "grid"}" x2="100%" y1="${at}%" y2="${at}%"/><text class="ytick" x="-7" y="${at}%" dy="4">${text}</text>`;
    area.querySelector(".yaxis").innerHTML = scale.ticks.map(tick).join(""); // numbers only
    for (const group of area.querySelectorAll("g[data-y]")) {
      const across = readOf(group, "at");
      const set = (part, text) => group.querySelector("." + part)?.setAttribute("d", text);
      set("main", path(across, read(group.dataset.y).map(height)));
      set("bound", path(across, read(group.dataset.bound).map(height)));
      if (group.dataset.high) {
        const ends = across.map((at, i) => [at, height(read(group.dataset.low)[i]) ?? -1, height(read(group.dataset.high)[i])]).filter((end) => end[2] !== null);
        set("band", ends.length ? `M${[...ends.map(([at, , high]) => `${at} ${down(high)}`), ...ends.reverse().map(([at, low]) => `${at} ${down(low)}`)].join(" ")}Z` : "");
        set("span", ends.map(([at, low, high]) => `M${at} ${down(low)}V${down(high)}`).join(""));
      }
      if (group.dataset.law) {
        const [factor, exponent, first, last] = read(group.dataset.law);
        const rounds = readOf(group, "x");
        const begin = across[0];
        const wide = (across[across.length - 1] - begin) / Math.log(rounds[rounds.length - 1] / rounds[0]);
        const steps = Array.from({ length: 9 }, (_, i) => first * (last / first) ** (i / 8));
        set("fit", path(steps.map((t) => Math.round(begin + wide * Math.log(t / rounds[0]))), steps.map((t) => height(factor * t ** exponent))));
      }
      const values = read(group.dataset.y);
      for (const mark of area.querySelectorAll(`.markers[data-policy="${group.dataset.policy}"] use`)) {
        const at = height(values[Number(mark.dataset.i)]);
        mark.style.display = at === null || at < -0.01 ? "none" : "";
        if (at !== null) mark.setAttribute("y", `${(100 * (1 - at)).toFixed(2)}%`);
      }
    }
  }

  for (const select of document.querySelectorAll("select[data-chart]")) {
    select.addEventListener("change", () => rescale(areaOf(select), select.value));
  }

  // ---- values under the pointer -----------------------------------------------------------------------------------------------------

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.append(tip);

  function showTip(x, y) {
    tip.hidden = false;
    const frame = tip.getBoundingClientRect();
    const left = x + 14 + frame.width > window.innerWidth ? x - 14 - frame.width : x + 14;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, Math.min(y + 14, window.innerHeight - frame.height - 4))}px`;
  }

  function say(lines) {
    tip.replaceChildren(...lines.map(({ text, colour, strong }) => {
      const line = document.createElement(strong ? "strong" : "span");
      if (colour) {
        const dot = document.createElement("i");
        dot.style.background = colour;
        line.append(dot);
      }
      line.append(text);
      return line;
    }));
  }

  function hideTip(area) {
    tip.hidden = true;
    area?.querySelector(".cursor")?.setAttribute("visibility", "hidden");
  }

  // The round nearest to a place across the chart, and what every visible line has there.
  function linesAt(area, at) {
    const groups = [...area.querySelectorAll("g[data-y]")].filter((group) => !group.classList.contains("off"));
    if (!groups.length) return null;
    const nearest = (group) => readOf(group, "at").reduce((best, place, i, all) => (Math.abs(place - at) < Math.abs(all[best] - at) ? i : best), 0);
    const first = nearest(groups[0]);
    const round = readOf(groups[0], "x")[first];
    const place = readOf(groups[0], "at")[first];
    const lines = [];
    for (const group of groups) {
      const i = readOf(group, "x").indexOf(round);
      if (i < 0) continue;
      const [value, low, high, bound] = ["y", "low", "high", "bound"].map((name) => read(group.dataset[name])[i] ?? null);
      const span = low !== null && high > low ? ` (${number(low)} to ${number(high)})` : "";
      const allowed = bound === null ? "" : `, bound ${number(bound)}`;
      lines.push({ value, text: `${shortened(group.dataset.label, 44)} ${number(value)}${span}${allowed}`, colour: group.style.getPropertyValue("--c") });
    }
    lines.sort((one, other) => other.value - one.value);
    return { place, round, lines };
  }

  function point(area, at, x, y) {
    const found = linesAt(area, at);
    if (!found) return hideTip(area);
    const cursor = area.querySelector(".cursor");
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, `${found.place / 10}%`);
    cursor.setAttribute("visibility", "visible");
    say([{ text: `${area.dataset.letter} = ${found.round.toLocaleString("en")}`, strong: true }, ...found.lines.slice(0, 14)]);
    area.dataset.place = found.place;
    showTip(x, y);
    return found;
  }

  for (const area of document.querySelectorAll('.area[data-kind="lines"]')) {
    const picture = area.querySelector(".picture");
    area.addEventListener("pointermove", (event) => {
      const frame = picture.getBoundingClientRect();
      const at = (1000 * (event.clientX - frame.left)) / frame.width;
      if (at < -20 || at > 1020) hideTip(area);
      else point(area, at, event.clientX, event.clientY);
    });
    area.addEventListener("pointerleave", () => hideTip(area));
    area.addEventListener("blur", () => hideTip(area));
    area.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") hideTip(area);
      if (!step) return;
      event.preventDefault();
      const group = area.querySelector("g[data-y]:not(.off)");
      if (!group) return;
      const places = readOf(group, "at");
      const now = area.dataset.place === undefined ? (step > 0 ? -1 : places.length) : places.indexOf(Number(area.dataset.place));
      const next = places[Math.max(0, Math.min(places.length - 1, now + step))];
      const frame = picture.getBoundingClientRect();
      point(area, next, frame.left + (next / 1000) * frame.width, frame.top + 20);
    });
  }
  for (const mark of document.querySelectorAll("[data-tip]")) {
    const show = (x, y) => {
      say(mark.dataset.tip.split("\n").map((text, i) => ({ text: shortened(text, i ? 80 : 44), strong: !i })));
      showTip(x, y);
    };
    mark.addEventListener("pointermove", (event) => show(event.clientX, event.clientY));
    mark.addEventListener("pointerleave", () => hideTip());
    mark.addEventListener("focus", () => {
      const frame = mark.getBoundingClientRect();
      show(frame.left + frame.width / 2, frame.top + frame.height / 2);
    });
    mark.addEventListener("blur", () => hideTip());
  }
  window.addEventListener("scroll", () => hideTip(document.querySelector(".area:hover")), { passive: true });

  // ---- what readers can switch ------------------------------------------------------------------------------------------------------

  const chips = [...document.querySelectorAll(".chip")];

  function show(policy, on) {
    for (const mark of document.querySelectorAll(`main [data-policy="${policy}"]`)) mark.classList.toggle("off", !on);
    for (const chip of chips) if (chip.dataset.policy === policy) chip.setAttribute("aria-pressed", String(on));
  }

  for (const chip of chips) chip.addEventListener("click", () => show(chip.dataset.policy, chip.getAttribute("aria-pressed") !== "true"));
  for (const [id, on] of [["all", true], ["none", false]]) {
    document.getElementById(id).addEventListener("click", () => chips.forEach((chip) => show(chip.dataset.policy, on)));
  }
  document.getElementById("bounds").addEventListener("click", (event) => {
    const on = event.currentTarget.getAttribute("aria-checked") !== "true";
    event.currentTarget.setAttribute("aria-checked", String(on));
    root.classList.toggle("boundless", !on);
  });
  for (const button of document.querySelectorAll(".enlarge")) {
    button.addEventListener("click", () => {
      const large = button.closest("figure").classList.toggle("large");
      button.setAttribute("aria-pressed", String(large));
      button.closest("figure").scrollIntoView({ block: "nearest" });
    });
  }
  for (const tabs of document.querySelectorAll(".tabs")) {
    const choose = (horizon) => {
      for (const button of tabs.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.horizon === horizon));
      for (const part of tabs.parentElement.querySelectorAll(".horizon")) part.hidden = part.dataset.horizon !== horizon;
    };
    for (const button of tabs.querySelectorAll("button")) button.addEventListener("click", () => choose(button.dataset.horizon));
    choose(tabs.querySelector("button[aria-pressed=true]").dataset.horizon);
  }
  bridlePage.followTheme(() => {});
})();
