// The live page: it reads server-sent events by fetch, because an EventSource cannot send the key.
(function () {
  const { number, followTheme } = bridlePage;
  const { make, lineChart, bars, table, figures } = bridleDrawing;
  const byId = (id) => document.getElementById(id);
  const MOST_POINTS = 600; // of a line; older ones are thinned
  const SHOWN_ROUNDS = 25;
  let stop = new AbortController(); // of the stream that is read
  let seen = null; // what was last shown, to draw again when the window or the theme changes
  let before = new Map(); // name -> [time, round] of the samples that rates are taken over
  let history = null; // of the session on display

  // ---- the key ------------------------------------------------------------------------------------------------------------------------

  const kept = {
    get: () => { try { return sessionStorage.getItem("bridle-key"); } catch { return kept.own; } },
    set: (key) => { kept.own = key; try { sessionStorage.setItem("bridle-key", key); } catch { /* then it lasts as long as the page */ } },
    drop: () => { kept.own = null; try { sessionStorage.removeItem("bridle-key"); } catch { /* there was none */ } },
    own: null,
  };

  function askForKey(sentence) {
    line("signed out", "");
    byId("login").hidden = false;
    byId("all").hidden = byId("one").hidden = byId("leave").hidden = true;
    byId("title").textContent = "Sessions";
    byId("lead").textContent = "";
    byId("refused").hidden = !sentence;
    byId("refused").textContent = sentence || "";
    byId("key").focus();
  }

  byId("login").addEventListener("submit", (event) => {
    event.preventDefault();
    kept.set(byId("key").value.trim());
    byId("key").value = "";
    follow();
  });
  byId("leave").addEventListener("click", () => {
    stop.abort();
    kept.drop();
    askForKey("");
  });

  // ---- the stream ---------------------------------------------------------------------------------------------------------------------

  const chosen = () => (location.hash.startsWith("#/") ? decodeURIComponent(location.hash.slice(2)) : null);

  function line(text, kind) {
    byId("line").textContent = text;
    byId("line").className = `state ${kind}`;
  }

  async function follow() {
    stop.abort();
    const mine = (stop = new AbortController());
    const name = chosen();
    const fresh = () => (name === null ? null : { name, rounds: [], samples: [], latest: 0 });
    history = fresh();
    seen = null;
    before = new Map();
    byId("login").hidden = true;
    document.title = name === null ? "bridle: sessions" : `bridle: ${name}`;
    byId("title").textContent = name === null ? "Sessions" : name;
    byId("lead").textContent = "";
    byId("all").replaceChildren();
    byId("one").replaceChildren();
    for (let failed = 0; !mine.signal.aborted; failed += 1) {
      if (failed) {
        line("reconnecting", "broken");
        await new Promise((resume) => setTimeout(resume, Math.min(5000, 250 * 2 ** Math.min(failed, 6))));
      }
      if (mine.signal.aborted) return;
      try {
        const key = kept.get();
        const path = "v1/events" + (name === null ? "" : `?session=${encodeURIComponent(name)}`);
        const answer = await fetch(path, { headers: { Accept: "text/event-stream", ...(key ? { Authorization: `Bearer ${key}` } : {}) }, signal: mine.signal, cache: "no-store", redirect: "follow" });
        if (answer.status === 401 || answer.status === 403) {
          const said = key ? await sentence(answer) : "";
          if (mine.signal.aborted) return;
          kept.drop();
          askForKey(said);
          return;
        }
        if ([400, 404, 409, 422].includes(answer.status)) {
          showMissing(await sentence(answer));
          return;
        }
        if (!answer.ok) continue;
        line("live", "live");
        byId("leave").hidden = !key;
        if (history) history.latest = 0; // the stream begins anew, with the last rounds
        await read(answer.body, mine, () => { failed = 0; });
      } catch (wrong) {
        if (mine.signal.aborted) return;
        if (!(wrong instanceof TypeError)) throw wrong; // a TypeError is what fetch says of a broken line
      }
    }
  }

  async function sentence(answer) {
    try {
      return (await answer.json()).error;
    } catch {
      return `The server answered with status ${answer.status}.`;
    }
  }

  async function read(body, mine, heard) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let waiting = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done || mine.signal.aborted) return;
      const parts = (waiting + value).split("\n\n");
      waiting = parts.pop();
      for (const part of parts) {
        const data = part.split("\n").filter((each) => each.startsWith("data:")).map((each) => each.slice(5)).join("\n");
        if (!data) continue; // a comment that keeps the line open
        heard();
        take(JSON.parse(data));
      }
    }
  }

  function take(event) {
    if (event.sessions && chosen() === null) showAll((seen = event));
    else if (event.session && history && event.session.name === history.name) {
      remember(event);
      showOne((seen = event));
    }
  }

  // ---- rates and history --------------------------------------------------------------------------------------------------------------

  // Rounds a second over the last ten seconds or so of samples; null before the second one.
  function pace(name, time, round) {
    const samples = before.get(name) || [];
    if (samples.length && samples[samples.length - 1][1] > round) samples.length = 0; // another session of this name
    samples.push([time, round]);
    while (samples.length > 2 && time - samples[1][0] >= 10) samples.shift();
    before.set(name, samples);
    return samples.length < 2 || time <= samples[0][0] ? null : (round - samples[0][1]) / (time - samples[0][0]);
  }

  function thinned(points) {
    if (points.length > MOST_POINTS) for (let i = points.length - 2; i > 0; i -= 2) points.splice(i, 1);
    return points;
  }

  function remember(event) {
    for (const round of event.rounds) {
      if (round.round <= history.latest && !round.ticket) continue;
      history.latest = Math.max(history.latest, round.round);
      history.rounds = history.rounds.filter((each) => each.round !== round.round || each.ticket !== round.ticket);
      history.rounds.push(round);
    }
    history.rounds.splice(0, history.rounds.length - MOST_POINTS);
    const proof = event.certificate;
    const sample = { round: event.session.round, cost: event.session.cost, limits: {}, prices: {}, regret: proof?.regret ?? null, bound: proof?.bound?.regret ?? null };
    for (const limit of limitsOf(event)) {
      sample.limits[limit.name] = limit.violation;
      sample.prices[limit.name] = limit.price;
    }
    if (!history.samples.length) history.samples.push(...earlier(event, sample));
    const last = history.samples[history.samples.length - 1];
    if (!last || last.round !== sample.round) thinned(history.samples).push(sample);
  }

  // What the sums were before the first picture, as far back as the rounds that came with it go without a gap.
  function earlier(event, sample) {
    const found = [];
    const limits = { ...sample.limits };
    let at = sample.round;
    for (const round of event.rounds.filter((each) => each.round <= sample.round && !each.ticket).reverse()) {
      if (round.round !== at || (round.g || []).length > limitsOf(event).length) break;
      limitsOf(event).forEach((limit, i) => { limits[limit.name] -= Math.max(0, round.g?.[i] ?? 0); });
      at -= 1;
      found.push({ round: at, limits: { ...limits }, prices: {}, regret: null, bound: null });
    }
    return found.reverse();
  }

  function limitsOf(event) {
    if (event.certificate) return event.certificate.limits;
    const names = event.session.names?.length ? event.session.names : event.session.violations.map((_, i) => (event.session.violations.length === 1 ? "the limit" : `limit ${i}`));
    return event.session.violations.map((violation, i) => ({ name: names[i], violation, balance: null, price: null }));
  }

  // ---- all sessions -------------------------------------------------------------------------------------------------------------------

  function stateOf(session, rate) {
    if (session.round === undefined) return [session.owner ? "elsewhere" : "not open", ""];
    if (session.alarms.length) return ["alarm", "alarmed"];
    return rate ? ["deciding", "deciding"] : ["quiet", ""];
  }

  const perSecond = (rate) => (rate === null ? "–" : rate === 0 ? "0" : number(rate >= 100 ? Math.round(rate) : Number(rate.toPrecision(3))));
  const quantity = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

  function showAll(event) {
    byId("all").hidden = false;
    byId("one").hidden = true;
    let total = 0;
    const rows = event.sessions.map((session) => {
      const own = session.round !== undefined;
      const rate = own ? pace(session.name, event.time, session.round) : null;
      total += rate || 0;
      const [state, kind] = stateOf(session, rate);
      const link = make("th", { scope: "row" }, make("a", { href: `#/${encodeURIComponent(session.name)}` }, session.name));
      const status = make("td", { class: "left" }, make("span", { class: `state ${kind}` }, state));
      if (!own) return [link, status, ...Array(7).fill("–"), make("td", { class: "left" }, session.owner || "")];
      return [
        link, status, session.round.toLocaleString("en"), perSecond(rate), make("td", { class: session.ccv > 0 ? "over" : null }, number(session.ccv)),
        make("td", { class: session.alarms.length ? "over" : null }, session.alarms.length), session.round ? number(session.cost / session.round) : "–",
        session.pending, make("td", { class: session.quarantined ? "over" : null }, session.quarantined ?? "–"), make("td", { class: "left" }, session.policy),
      ];
    });
    byId("lead").textContent = `${quantity(rows.length, "session", "sessions")}, ${perSecond(total)} rounds a second`;
    const head = ["session", "state", "rounds", "a second", "violation", "alarms", "mean cost", "pending", "refused", "policy"];
    const content = rows.length ? table("All sessions", head, rows) : make("p", { class: "note" }, "There are no sessions yet: POST /v1/sessions makes one, or bridle.toml names them.");
    byId("all").replaceChildren(content);
    for (const place of [1, 9]) byId("all").querySelector(`thead th:nth-child(${place + 1})`)?.classList.add("left");
  }

  // ---- one session --------------------------------------------------------------------------------------------------------------------

  function showMissing(text) {
    line("not there", "broken");
    byId("one").hidden = false;
    byId("all").hidden = true;
    byId("one").replaceChildren(make("p", { class: "alarm" }, text), make("p", {}, make("a", { href: "#" }, "All sessions")));
  }

  const section = (id, title, ...parts) => make("section", { id }, make("h2", {}, title), ...parts);
  const figure = (title, about, content) => make("figure", {}, make("figcaption", {}, make("h3", {}, title), make("p", {}, about)), content);
  const percent = (share) => (share === null || share === undefined ? "–" : `${number(Number((100 * share).toPrecision(4)))} %`);
  const vector = (x) => (!x ? "–" : x.slice(0, 4).map(number).join(", ") + (x.length > 4 ? `, … (${x.length})` : ""));

  function showOne(event) {
    byId("one").hidden = false;
    byId("all").hidden = true;
    const { session, certificate: proof } = event;
    const rate = pace(session.name, event.time, session.round);
    const [state] = stateOf(session, rate);
    const limits = limitsOf(event);
    const narrow = window.innerWidth < 720;
    const width = narrow ? Math.max(280, window.innerWidth - 48) : Math.min(560, (Math.min(window.innerWidth, 1240) - 120) / 2);
    byId("lead").textContent = `${session.policy}, ${quantity(session.dim, "coordinate", "coordinates")}, engine ${session.engine}: ${state}`;
    const parts = [];

    for (const alarm of event.alarms) parts.push(make("p", { class: "alarm" }, `${alarm.kind} in round ${alarm.round.toLocaleString("en")}${alarm.text ? `: ${alarm.text}` : ""}`));
    parts.push(figures([
      ["Rounds", session.round.toLocaleString("en"), rate === null ? "" : `${perSecond(rate)} a second`],
      ["Mean cost", session.round ? number(session.cost / session.round) : "–", `${number(session.cost)} in all`],
      ["Violation", number(session.ccv), proof ? `in ${quantity(proof.violated, "round", "rounds")}` : ""],
      ["Certified regret", number(proof?.regret ?? null), proof ? (proof.bound.regret === null ? proof.why || "the theorem gives no bound here" : `theorem: at most ${number(proof.bound.regret)}`) : "no certificate is kept"],
      ["Pending", session.pending.toLocaleString("en"), session.dropped ? `${session.dropped.toLocaleString("en")} dropped` : "rounds wait for feedback"],
      ["Refused", String(session.quarantined ?? "–"), "records in quarantine"],
    ]));

    const charts = make("div", { class: "charts" });
    const rounds = [...history.rounds].sort((one, other) => one.round - other.round);
    charts.append(figure("Cost a round", "of the last rounds", lineChart("Cost of the last rounds", [{ name: "cost", points: rounds.map((each) => [each.round, each.f]) }], width)));
    const decided = Array.from({ length: Math.min(8, session.dim) }, (_, i) => ({ name: session.dim === 1 ? "x" : `x${i + 1}`, points: rounds.map((each) => [each.round, each.x?.[i] ?? NaN]) }));
    charts.append(figure("Decisions", session.dim > 8 ? `the first 8 of ${session.dim} coordinates` : "of the last rounds", lineChart("Decisions of the last rounds", decided, width)));
    const over = (pick) => limits.slice(0, 8).map((limit) => ({ name: limit.name, points: history.samples.map((sample) => [sample.round, pick(sample, limit.name)]) }));
    if (limits.length) charts.append(figure("Violation of each limit", "in all, over the last rounds", lineChart("Cumulative violation of each limit", over((sample, name) => sample.limits[name]), width)));
    if (history.samples.some((sample) => sample.regret !== null)) {
      const curves = [{ name: "certified regret", points: history.samples.map((sample) => [sample.round, sample.regret ?? NaN]) }];
      const bounded = history.samples.some((sample) => sample.bound !== null);
      // A bound far above would press the certificate flat: it is then a number alone.
      const close = bounded && proof.bound.regret <= 20 * Math.max(1e-9, Math.abs(proof.regret ?? 0));
      if (close) curves.push({ name: "the theorem's bound", dashed: true, points: history.samples.map((sample) => [sample.round, sample.bound ?? NaN]) });
      const about = bounded && !close ? `what is proved of this run; the theorem's bound is ${number(proof.bound.regret)}` : "what is proved of this run, since this page was opened";
      charts.append(figure("Certified regret", about, lineChart("Certified regret and the theorem's bound", curves, width)));
    }
    if (limits.some((limit) => limit.price !== null)) charts.append(figure("Price of each limit", "what one more unit seems to be worth in cost", lineChart("Prices of the limits", over((sample, name) => sample.prices[name] ?? NaN), width)));
    if (proof?.weights) {
      const flat = proof.weights.map((weight) => (Array.isArray(weight) ? weight.reduce((sum, each) => sum + each, 0) / weight.length : weight));
      const named = flat.map((value, i) => ({ name: proof.rules[i] ?? `rule ${i}`, value, text: percent(value) })).sort((one, other) => other.value - one.value);
      const shown = named.slice(0, 10);
      charts.append(figure("Weights of rules", named.length > 10 ? `the first 10 of ${named.length}` : "what each is worth at present", bars("Weights of rules", shown)));
    }
    if (proof?.rates?.length) {
      const rows = proof.rates.map((rate) => ({ name: rate.name, value: rate.measured, asked: rate.at_most, over: rate.measured > rate.at_most, text: `${percent(rate.measured)} of ${percent(rate.at_most)}` }));
      charts.append(figure("How often, against what was asked", "share of rounds that violated; the mark is what was asked", bars("Rates against what was asked", rows)));
    }
    parts.push(charts);

    if (limits.length) {
      const head = ["limit", "violation", "balance", "price"];
      parts.push(section("limits", "Limits", table("Limits", head, limits.map((limit) => [limit.name, make("td", { class: limit.violation > 0 ? "over" : "held" }, number(limit.violation)), number(limit.balance), number(limit.price)]))));
    }
    if (proof?.rates?.length) {
      const head = ["limit on how often", "asked", "measured", "proved", "violated", "counted", "open"];
      parts.push(section("rates", "Rates", table("Rates", head, proof.rates.map((rate) => [rate.name, percent(rate.at_most), make("td", { class: rate.measured > rate.at_most ? "over" : "held" }, percent(rate.measured)), rate.proved === null ? make("td", { class: "wrap dim" }, rate.why) : percent(rate.proved), rate.violated.toLocaleString("en"), rate.counted.toLocaleString("en"), rate.open]))));
    }
    const gates = Object.entries(session.gates || {});
    if (gates.length) {
      const head = ["budget", "kind", "of", "spent", "left", "price"];
      parts.push(section("gates", "Budgets", table("Budgets", head, gates.map(([name, gate]) => [name, gate.kind, number(gate.budget), number(gate.spent), number(gate.left), number(gate.price ?? null)]))));
    }
    const last = rounds.slice(-SHOWN_ROUNDS).reverse();
    const head = ["round", "decision", "cost", ...(last.some((each) => each.g?.length) ? limits.map((limit) => limit.name) : []), "ticket"];
    const listed = last.map((each) => [each.round.toLocaleString("en"), vector(each.x), number(each.f), ...(head.length > 4 ? limits.map((_, i) => make("td", { class: each.g?.[i] > 0 ? "over" : null }, number(each.g?.[i] ?? null))) : []), each.ticket ?? "–"]);
    parts.push(section("last", "The last decisions", listed.length ? table("The last decisions", head, listed) : make("p", { class: "empty-note" }, "This server has played no round of it yet.")));
    if (event.report) parts.push(section("report", "In words", make("pre", { class: "report" }, event.report)));
    const tops = [...byId("one").querySelectorAll(".scroll")].map((box) => [box.getAttribute("aria-label"), box.scrollLeft]);
    byId("one").replaceChildren(...parts);
    for (const [label, left] of tops) for (const box of byId("one").querySelectorAll(".scroll")) if (box.getAttribute("aria-label") === label) box.scrollLeft = left;
  }

  // ---- what moves it ------------------------------------------------------------------------------------------------------------------

  function again() {
    if (!seen) return;
    if (seen.sessions) showAll(seen);
    else showOne(seen);
  }

  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return; // a phone's address bar comes and goes
    width = window.innerWidth;
    again();
  });
  window.addEventListener("hashchange", follow);
  window.addEventListener("pagehide", () => stop.abort());
  followTheme(() => {}); // colours are the style sheet's
  follow();
})();
