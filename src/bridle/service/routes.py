"""The routes of the service.

Every body and every answer is JSON. Each request carries ``Authorization: Bearer KEY`` (but for /healthz, /readyz, /openapi.json, /docs and
the frame of the page at /) and is answered with ``X-Request-Id`` (the caller's own, if it sent a short one). Arrays are nested lists of
numbers; null in `rules` is a rule that has nothing to say. A key needs the scope in brackets; `admin` has all of them.

sessions
    POST   /v1/sessions                      [admin]    {name, policy, domain, parameters?, names?, rules?, rules_per?, features?, engine?, x1?,
                                                        certify?, levels?, tolerance?, late?, pending?, timeout?, largest?, most_constraints?,
                                                        gates?: {NAME: {budget, unit?, rounds?, ...}}}
                                                        -> 201 SESSION; 200 where one of this name was made from the same body; else 409
    GET    /v1/sessions                      [read]     -> {sessions: [SESSION or {name, owner}]}
    GET    /v1/sessions/{name}               [read]     -> SESSION
    DELETE /v1/sessions/{name}               [admin]    lets go of it: its lease and its memory are given back, its journal stays -> {name}

    SESSION is {name, policy, parameters, names, dim, engine, round, x, pending, dropped: [costs, constraints], cost, ccv, violations,
                alarms: [{kind, round}], gates: {NAME: GATE}, created: body of POST}
    GATE is {kind: "gate" | "pacer", budget, spent, left, unit, price?, played?, rounds?}
    domain is {kind: "ball" | "box" | "simplex" | "l1ball" | "spectrahedron" | "polyhedron" | "halfspace" | "product", and its arguments as in
               Python}, such as {"kind": "box", "low": 0.0, "high": 40.0, "dim": 1}

rounds (`name` in the path; an event has an identity: header ``Idempotency-Key``, or `key` in the body; text of at most 128 characters. The same
key with the same body is answered with the first answer, with another body 409. Without a key an event is a new one each time.)
    POST .../decide    [decide]   {rules?, features?, known?: {A, b}, key?}          -> {x, round}
    POST .../ask       [decide]   {rules?, features?, known?: {A, b}, key?}          -> {ticket, x, round}
    POST .../observe   [observe]  {f?, df?, g?, dg?, modulus?, ticket?, partial?, context?, played?, key?}
                                                                                     -> {round, next: x, or null where rules or features come first}
    POST .../forget    [observe]  {ticket, key?}                                     -> {round, next}
    POST .../batch     [decide and observe, as its events need]  {events: [{kind: "observe" | "ask" | "forget" | "decide", ...}], key?}
                                                                                     -> {answers: [ANSWER or {error}], refused, round, next}
       the events are played in order, each as if it came alone: one that is refused changes nothing, and the others go on.
       With `key` K and an event without one, the event's is K.0, K.1, ...
    POST .../limits    [admin]    {at_most?, domain?, key?}                          -> {round, next}
    POST .../pay       [observe]  {gate, amount, key?}                               -> {counted, left, price?}
    POST .../bid       [decide]   {gate, value}                                      -> {bid, price, left}
    POST .../budget    [admin]    {gate, budget, rounds?, key?}                      -> GATE

    `round` is how many rounds have been observed. A ticket is a whole number.

looks
    GET .../certificate   [read]  -> Certificate.json()
    GET .../report        [read]  -> {text}
    GET .../alarms        [read]  -> {alarms: [{kind, round, text?}]}
    GET .../weights       [read]  -> {rules: [name], weights}
    GET .../rates         [read]  -> {rates: [RateLimit as JSON]}
    GET .../prices        [read]  -> {names, prices}
    GET .../rounds?last=N [read]  -> {rounds: [{round, x, f, g, violation, cost, ccv, ticket?}]}, the last N <= 500 that this server has played
    GET .../quarantine?limit=&offset=  [read]  -> {quarantine: [{when, reason, request}], count}
    GET /v1/quarantine                 [read]  -> {counts: {NAME: count}}
    GET /v1/audit?limit=&offset=       [admin] -> {audit: [{when, who, what, session}]}
    GET /v1/events?session=NAME        [read]  server-sent events for the live page

the server
    GET /metrics        [read]   Prometheus
    GET /healthz        -> {status: "alive"}
    GET /readyz         -> {status: "ready"}, or 503 while it warms up or stops
    GET /openapi.json, /docs, /

errors are {"error": SENTENCE, "request": ID}:
    400  not JSON, or not of the right form         401  no key, a wrong or a revoked one    403  the key lacks the scope
    404  no such session, gate or ticket route      409  the name or the key was used for something else
    413  the body or the batch is too large         422  a refused record: the sentence that Python gives; it is in the quarantine, nothing changed
    429  too many requests (Retry-After)            503  the store is in trouble, the server starts or stops (Retry-After): try again with the same key
    307  another server owns the session: Location has its address
"""
