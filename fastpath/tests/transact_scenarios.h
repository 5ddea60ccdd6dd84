/* transact_scenarios: what tests/transact.c explores, and which of them shows which fault. */
#ifndef MR_TRANSACT_SCENARIOS_H
#define MR_TRANSACT_SCENARIOS_H

#define AT(t, ...) { t, { __VA_ARGS__ } }
#define PUTS(k) { 0, { { PUT, k, 0, k + 1 } } }

static const struct model_scenario scenarios[] = {
    /* Two add to one number. */
    { .name = "counter", .capacity = 4, .cores = 2, .before = { PUTS(0) },
      .packet = { { AT(0, { ADD, 0, 0, 1 }) }, { AT(0, { ADD, 0, 0, 2 }) } } },
    { .name = "counter3", .capacity = 4, .cores = 3, .before = { PUTS(0) },
      .packet = { { AT(0, { ADD, 0, 0, 1 }) }, { AT(0, { ADD, 0, 0, 2 }) }, { AT(0, { ADD, 0, 0, 4 }) } } },
    /* Each copies the other's number: both are the same then. */
    { .name = "skew", .capacity = 4, .cores = 2, .before = { PUTS(0), PUTS(1) },
      .packet = { { AT(0, { MOVE, 0, 1, 0 }) }, { AT(0, { MOVE, 1, 0, 0 }) } } },
    /* Who reads two numbers that another stores to finds both of one moment. */
    { .name = "look", .capacity = 4, .cores = 2, .before = { PUTS(0), PUTS(1) },
      .packet = { { AT(0, { ADD, 0, 0, 1 }, { ADD, 1, 0, 1 }) }, { AT(0, { GET, 0, 0, 0 }, { GET, 1, 0, 0 }), AT(0, { GET, 0, 0, 0 }) } } },
    /* The same of three, of which the reader refreshes one. */
    { .name = "looks", .capacity = 4, .expire_after = 100, .cores = 2, .end = 150, .before = { AT(60, { PUT, 0, 0, 1 }), AT(60, { PUT, 1, 0, 2 }) },
      .packet = { { AT(70, { ADD, 0, 0, 1 }, { GET, 1, 0, 0 }) }, { AT(80, { REFRESH, 0, 0, 0 }, { GET, 1, 0, 0 }, { ADD, 1, 0, 3 }) } } },
    /* Each inserts unless the other has: one of them does. Of keys in one bucket and in two. */
    { .name = "phantom", .capacity = 8, .cores = 2,
      .packet = { { AT(0, { UNLESS, 0, 1, 5 }) }, { AT(0, { UNLESS, 1, 0, 6 }) } } },
    { .name = "phantoms", .capacity = 16, .cores = 2,
      .packet = { { AT(0, { UNLESS, 0, 1, 5 }) }, { AT(0, { UNLESS, 1, 0, 6 }) } } },
    /* The first to come inserts, the others count. */
    { .name = "first", .capacity = 4, .cores = 2,
      .packet = { { AT(0, { COUNT, 0, 0, 1 }), AT(0, { COUNT, 1, 0, 1 }) },
                  { AT(0, { COUNT, 0, 0, 2 }), AT(0, { COUNT, 1, 0, 2 }) } } },
    { .name = "first3", .capacity = 3, .cores = 3,
      .packet = { { AT(0, { COUNT, 0, 0, 1 }) }, { AT(0, { COUNT, 0, 0, 2 }) }, { AT(0, { COUNT, 0, 0, 4 }) } } },
    /* Who sees what another inserted sees that it removed something else. */
    { .name = "dead", .capacity = 16, .cores = 2, .before = { PUTS(0) },
      .packet = { { AT(0, { DEL, 0, 0, 0 }, { PUT, 1, 0, 5 }) }, { AT(0, { GET, 0, 0, 0 }, { GET, 1, 0, 0 }) } } },
    { .name = "removal", .capacity = 4, .cores = 2, .before = { PUTS(0) },
      .packet = { { AT(0, { DEL, 0, 0, 0 }), AT(0, { PUT, 0, 0, 9 }) }, { AT(0, { ADD, 0, 0, 1 }), AT(0, { DEL, 0, 0, 0 }) } } },
    /* Operations of one packet on one key and one bucket. */
    { .name = "own", .capacity = 4, .cores = 2, .before = { PUTS(0) },
      .packet = { { AT(0, { PUT, 1, 0, 5 }, { ADD, 1, 0, 1 }, { DEL, 1, 0, 0 }, { PUT, 1, 0, 7 }) },
                  { AT(0, { DEL, 0, 0, 0 }, { PUT, 0, 0, 3 }, { COUNT, 1, 0, 2 }) } } },
    { .name = "twice", .capacity = 4, .cores = 2, .before = { PUTS(0) },
      .packet = { { AT(0, { PUT, 0, 0, 5 }, { GET, 0, 0, 0 }, { ADD, 0, 0, 1 }) },
                  { AT(0, { ADD, 0, 0, 2 }, { GET, 0, 0, 0 }, { PUT, 0, 0, 9 }) } } },
    /* A place that is given back is taken for another key, on either core. */
    { .name = "reuse", .capacity = 2, .cores = 2, .before = { PUTS(0), PUTS(1) }, .before_core = { 0, 1 },
      .packet = { { AT(0, { DEL, 0, 0, 0 }, { GET, 1, 0, 0 }), AT(0, { PUT, 2, 0, 5 }) },
                  { AT(0, { DEL, 1, 0, 0 }), AT(0, { ADD, 0, 0, 3 }, { PUT, 3, 0, 6 }) } } },
    /* Refused, although somebody has made room: then it is seen that he has. */
    { .name = "full", .capacity = 9, .cores = 2,
      .before = { PUTS(0), PUTS(2), PUTS(4), PUTS(6), PUTS(8), PUTS(10), PUTS(12), PUTS(14), PUTS(3), PUTS(1) },
      .packet = { { AT(0, { DEL, 0, 0, 0 }) }, { AT(0, { PUT, 1, 0, 9 }, { GET, 0, 0, 0 }) } } },
    { .name = "room", .capacity = 2, .cores = 2, .before = { PUTS(0), PUTS(1), PUTS(2) },
      .packet = { { AT(0, { DEL, 0, 0, 0 }), AT(0, { PUT, 2, 0, 7 }) }, { AT(0, { PUT, 3, 0, 9 }) } } },
    /* One core's pool is empty, the other is just taking of its own. */
    { .name = "lend", .capacity = 4, .cores = 2, .before = { PUTS(0), PUTS(1) },
      .packet = { { AT(0, { PUT, 2, 0, 5 }) }, { AT(0, { PUT, 3, 0, 6 }), AT(0, { DEL, 0, 0, 0 }) } } },
    /* A chain becomes longer while others look along it. */
    { .name = "chain", .capacity = 8, .cores = 2, .before = { PUTS(0), PUTS(1), PUTS(2) },
      .packet = { { AT(0, { PUT, 3, 0, 5 }), AT(0, { DEL, 1, 0, 0 }) }, { AT(0, { GET, 3, 0, 0 }, { PUT, 4, 0, 6 }) } } },
    /* A refresh on one core while another finds that nothing it knows of keeps the entry. */
    { .name = "refresh", .capacity = 2, .expire_after = 100, .cores = 2, .before = { AT(60, { PUT, 0, 0, 1 }) }, .end = 200,
      .packet = { { AT(150, { REFRESH, 0, 0, 0 }) }, { AT(165, { GET, 0, 0, 0 }) } } },
    { .name = "joined", .capacity = 2, .expire_after = 100, .cores = 2, .end = 230,
      .before = { AT(60, { PUT, 0, 0, 1 }), AT(150, { REFRESH, 0, 0, 0 }) },
      .packet = { { AT(155, { ADD, 0, 0, 1 }) }, { AT(165, { ADD, 0, 0, 2 }) } } },
    { .name = "ageing", .capacity = 4, .expire_after = 64, .cores = 2, .end = 200,
      .before = { AT(60, { PUT, 0, 0, 1 }), AT(70, { PUT, 1, 0, 2 }) },
      .packet = { { AT(140, { AGE, 0, 0, 0 }), AT(140, { GET, 0, 0, 0 }) }, { AT(123, { REFRESH, 0, 0, 0 }), AT(141, { PUT, 1, 0, 5 }) } } },
    { .name = "expired", .capacity = 2, .expire_after = 100, .cores = 2, .end = 250,
      .before = { AT(10, { PUT, 0, 0, 1 }), AT(20, { PUT, 1, 0, 2 }) }, .before_core = { 0, 1 },
      .packet = { { AT(160, { PUT, 0, 0, 5 }) }, { AT(160, { COUNT, 0, 0, 2 }, { PUT, 2, 0, 7 }) } } },
    /* Full until something expires. */
    { .name = "until", .capacity = 1, .expire_after = 100, .cores = 2, .end = 200,
      .before = { AT(10, { PUT, 0, 0, 1 }), AT(20, { PUT, 1, 0, 2 }) },
      .packet = { { AT(105, { PUT, 1, 0, 5 }), AT(111, { PUT, 1, 0, 6 }) }, { AT(108, { REFRESH, 0, 0, 0 }) } } },
    /* Numbers. Two lease at once, each of its own pool; and one of them takes back what it leased. */
    { .name = "leases", .capacity = 4, .numbered = 1, .cores = 2,
      .packet = { { AT(0, { PUT, 0, 0, 1 }, { ADD, 0, 0, 1 }), AT(0, { DEL, 0, 0, 0 }) },
                  { AT(0, { PUT, 1, 0, 2 }, { DEL, 1, 0, 0 }, { PUT, 2, 0, 3 }, { GET, 2, 0, 0 }) } } },
    /* Each leases unless the other's number is leased: one of them does. */
    { .name = "vacant", .capacity = 2, .numbered = 1, .cores = 2,
      .packet = { { AT(0, { UNLESS, 1, 0, 5 }) }, { AT(0, { UNLESS, 0, 1, 6 }) } } },
    { .name = "sum", .capacity = 2, .numbered = 1, .cores = 2, .before = { PUTS(0) },
      .packet = { { AT(0, { ADD, 0, 0, 1 }), AT(0, { DEL, 0, 0, 0 }) }, { AT(0, { ADD, 0, 0, 2 }, { GET, 0, 0, 0 }) } } },
    /* A pool runs dry: the packet borrows of the fullest, which is just leasing and freeing. */
    { .name = "borrow", .capacity = 4, .numbered = 1, .cores = 2, .before = { PUTS(0), PUTS(1) },
      .packet = { { AT(0, { PUT, 2, 0, 5 }) }, { AT(0, { PUT, 3, 0, 6 }), AT(0, { DEL, 0, 0, 0 }) } } },
    { .name = "borrow3", .capacity = 4, .numbered = 1, .cores = 3, .before = { PUTS(0), PUTS(1) }, .before_core = { 0, 1 },
      .packet = { { AT(0, { PUT, 2, 0, 5 }) }, { AT(0, { PUT, 3, 0, 6 }) }, { AT(0, { PUT, 4, 0, 7 }) } } },
    /* All pools have: refused unless it is seen that somebody freed one. */
    { .name = "dry", .capacity = 2, .numbered = 1, .cores = 2, .before = { PUTS(0), PUTS(1), PUTS(2) },
      .packet = { { AT(0, { DEL, 0, 0, 0 }) }, { AT(0, { PUT, 3, 0, 9 }, { GET, 0, 0, 0 }) } } },
    { .name = "drier", .capacity = 2, .numbered = 1, .cores = 2, .before = { PUTS(0), PUTS(1), PUTS(2) },
      .packet = { { AT(0, { DEL, 0, 0, 0 }), AT(0, { PUT, 2, 0, 7 }) }, { AT(0, { PUT, 3, 0, 9 }, { GET, 0, 0, 0 }) } } },
    /* A lease that one core refreshes and another finds too old; and one that ends between two packets. */
    { .name = "kept", .capacity = 2, .numbered = 1, .expire_after = 100, .cores = 2, .before = { AT(60, { PUT, 0, 0, 1 }) }, .end = 200,
      .packet = { { AT(150, { REFRESH, 0, 0, 0 }) }, { AT(165, { GET, 0, 0, 0 }) } } },
    { .name = "ended", .capacity = 2, .numbered = 1, .expire_after = 64, .cores = 2, .end = 200,
      .before = { AT(60, { PUT, 0, 0, 1 }), AT(70, { PUT, 1, 0, 2 }) }, .before_core = { 0, 1 },
      .packet = { { AT(140, { AGE, 0, 0, 0 }), AT(140, { GET, 0, 0, 0 }) }, { AT(123, { REFRESH, 0, 0, 0 }), AT(141, { PUT, 2, 0, 5 }) } } },
    { .name = "again", .capacity = 1, .numbered = 1, .expire_after = 100, .cores = 2, .end = 205, .before = { AT(90, { PUT, 0, 0, 1 }) },
      .before_core = { 1 },
      .packet = { { AT(150, { REFRESH, 0, 0, 0 }) }, { AT(100, { DEL, 0, 0, 0 }), AT(100, { PUT, 1, 0, 2 }), AT(201, { GET, 1, 0, 0 }) } } },
    /* Elements of a vector: a number that is there from the start. */
    { .name = "elements", .capacity = 2, .numbered = 1, .cores = 2, .before = { PUTS(0), PUTS(1) }, .before_core = { 0, 1 },
      .packet = { { AT(0, { ADD, 0, 0, 1 }, { GET, 1, 0, 0 }), AT(0, { ADD, 1, 0, 1 }) },
                  { AT(0, { ADD, 1, 0, 2 }, { GET, 0, 0, 0 }), AT(0, { ADD, 0, 0, 2 }) } } },
    /* Both of one moment, too. */
    { .name = "columns", .capacity = 2, .numbered = 1, .cores = 2, .before = { PUTS(0), PUTS(1) }, .before_core = { 0, 1 },
      .packet = { { AT(0, { ADD, 0, 0, 1 }, { ADD, 1, 0, 1 }) }, { AT(0, { GET, 0, 0, 0 }, { GET, 1, 0, 0 }), AT(0, { GET, 0, 0, 0 }) } } },
    /* A full object, of which a packet removes one and puts another: its own removal left room. */
    { .name = "exchange", .capacity = 1, .cores = 2, .before = { PUTS(0), PUTS(1) },
      .packet = { { AT(0, { DEL, 0, 0, 0 }, { PUT, 1, 0, 5 }) }, { AT(0, { GET, 0, 0, 0 }, { GET, 1, 0, 0 }), AT(0, { PUT, 2, 0, 3 }) } } },
    { .name = "returned", .capacity = 1, .numbered = 1, .cores = 2, .before = { PUTS(0), PUTS(1) },
      .packet = { { AT(0, { DEL, 0, 0, 0 }, { PUT, 1, 0, 5 }) }, { AT(0, { GET, 0, 0, 0 }), AT(0, { PUT, 2, 0, 3 }) } } },
    /* The place of an entry that one core is refreshing is taken by another: its life is its own. */
    { .name = "rest", .capacity = 1, .expire_after = 100, .cores = 2, .end = 205, .before = { AT(90, { PUT, 0, 0, 1 }) },
      .before_core = { 1 },
      .packet = { { AT(150, { REFRESH, 0, 0, 0 }) }, { AT(100, { DEL, 0, 0, 0 }), AT(100, { PUT, 1, 0, 2 }), AT(201, { GET, 1, 0, 0 }) } } },
};

static const struct {
    int fault;
    const char *name, *scenario;
    u32 bound;
} faults[] = {
    { TRANSACT_FAULT_READS, "reads are not validated", "skew", 2 },
    { TRANSACT_FAULT_MISSES, "misses are not validated", "phantoms", 2 },
    { TRANSACT_FAULT_FULLNESS, "fullness is not validated", "full", 2 },
    { TRANSACT_FAULT_UPDATE, "an update is lost", "counter", 2 },
    { TRANSACT_FAULT_DEAD, "dead entries are not told", "dead", 2 },
    { TRANSACT_FAULT_GRACE, "no grace before stamps are joined", "refresh", 2 },
    { TRANSACT_FAULT_REST, "entries do not rest", "rest", 2 },
    { TRANSACT_FAULT_JOIN, "stamps are not joined", "joined", 2 },
    { TRANSACT_FAULT_MARK, "marks are not told", "refresh", 3 },
    { TRANSACT_FAULT_ALONE, "alone without the lines", "lend", 2 },
    { TRANSACT_FAULT_MISSES, "that a number is free is not validated", "vacant", 2 },
    { TRANSACT_FAULT_FULLNESS, "that no number is free is not validated", "dry", 2 },
    { TRANSACT_FAULT_REST, "freed numbers do not rest", "again", 2 },
    { TRANSACT_FAULT_GRACE, "no grace before a lease ends", "kept", 2 },
    { TRANSACT_FAULT_FEW, "words in places are not validated", "skew", 2 },
    { TRANSACT_FAULT_FEW, "words of numbers in places are not validated", "columns", 2 },
    { TRANSACT_FAULT_FEW, "words in places are not validated by who only reads", "look", 2 },
    { TRANSACT_FAULT_OWN, "what a packet removed is not its own to use", "exchange", 1 },
    { TRANSACT_FAULT_OWN, "a number that a packet freed is not its own to lease", "returned", 1 },
    { TRANSACT_FAULT_ALONE, "a pool lends to who has not all lines", "borrow", 2 },
};

#endif
