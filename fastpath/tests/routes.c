/* Control of a routing table, against a list: entries set, replaced, removed and listed at random, at
 * capacity and beyond; and after each change the longest matching route of random destinations.
 */
#include "../state/routes.h"
#include "check.h"

enum { CAPACITY = 300, KEYS = 4000 };

static const struct shape shape = { .key_bytes = 24, .value_bytes = 64, .capacity = CAPACITY };

struct entry {
    struct routes_key key;
    struct routes_value value;
    int there;
};

static struct entry list[KEYS];
static u32 listed;

static int same_key(const struct routes_key *a, const struct routes_key *b) { return !memcmp(a, b, sizeof(*a)); }

static struct entry *list_find(const struct routes_key *key)
{
    for (u32 i = 0; i < listed; i++)
        if (list[i].there && same_key(&list[i].key, key))
            return &list[i];
    return NULL;
}

/* A prefix that nests in others often, with no bits beyond its length. */
static struct routes_key draw_route(void)
{
    struct routes_key key = { .what = ROUTES_ROUTE, .family = draw(2) ? 4 : 6, .number = 250 + (u32)draw(6) };
    u32 bytes = key.family == 4 ? 4 : 16;

    key.bits = (u8)draw(8 * bytes + 1);
    for (u32 i = 0; i < bytes; i++)
        key.address[i] = draw(4) ? 0 : (u8)(1u << draw(8));
    for (u32 bit = key.bits; bit < 8 * bytes; bit++)
        key.address[bit / 8] &= (u8)~(0x80u >> bit % 8);
    /* IPv4's two tables are one. */
    if (key.family == 4 && key.number == ROUTES_LOCAL)
        key.number = ROUTES_MAIN;
    return key;
}

static int under(const struct routes_key *route, u8 family, u32 table, const u8 *address)
{
    if (route->what != ROUTES_ROUTE || route->family != family || route->number != table || route->hop)
        return 0;
    for (u32 bit = 0; bit < route->bits; bit++)
        if ((route->address[bit / 8] ^ address[bit / 8]) & (0x80u >> bit % 8))
            return 0;
    return 1;
}

static void compare_lookups(struct routes *r)
{
    for (u32 round = 0; round < 8; round++) {
        struct routes_key to = draw_route();
        const struct routes_hop *found = routes_find(r, &shape, to.family, to.number, to.address, 0);
        const struct entry *best = NULL;

        for (u32 i = 0; i < listed; i++)
            if (list[i].there && under(&list[i].key, to.family, to.number, to.address) &&
                (!best || list[i].key.bits > best->key.bits))
                best = &list[i];
        CHECK(!found == !best);
        CHECK(!found || !best || !memcmp(&found->value, &best->value, sizeof(best->value)));
    }
}

static u32 hops_of(const struct routes_key *key)
{
    struct routes_key hop = *key;
    u32 n = 0;

    for (hop.hop = 0; list_find(&hop); hop.hop++)
        n++;
    return n;
}

static void set(struct routes *r, struct routes_key key)
{
    struct routes_value value = { .type = 1, .ifindex = (u32)draw(9), .metric = (u32)draw(100), .weight = (u32)draw(4) };
    struct entry *entry = list_find(&key);
    u32 hops = 0, neighbours = 0;
    int expected = 0;

    for (u32 i = 0; i < listed; i++) {
        hops += list[i].there && list[i].key.what == ROUTES_ROUTE;
        neighbours += list[i].there && list[i].key.what == ROUTES_NEIGHBOUR;
    }
    if (key.what == ROUTES_NEIGHBOUR) {
        memset(&value, 0, sizeof(value));
        value.mac[5] = (u8)draw(256);
        expected = !entry && neighbours == CAPACITY ? -E2BIG : 0;
    } else {
        struct routes_key first = key;

        first.hop = 0;
        if (key.hop && (hops_of(&first) != key.hop))
            expected = -EINVAL;
        else if ((key.hop || !entry) && hops == CAPACITY)
            expected = -ENOSPC;
    }
    CHECK(routes_set(r, &shape, (u8 *)&key, (u8 *)&value, 0) == expected);
    if (expected)
        return;
    if (key.what == ROUTES_ROUTE && key.hop == 0)
        for (struct routes_key hop = key; hop.hop++, (entry = list_find(&hop));)
            entry->there = 0;
    entry = list_find(&key);
    for (u32 i = 0; !entry && i < listed; i++)
        if (!list[i].there)
            entry = &list[i];
    if (!entry)
        entry = &list[listed++];
    *entry = (struct entry){ key, value, 1 };
}

static void remove_key(struct routes *r, struct routes_key key)
{
    struct entry *entry = list_find(&key);
    int expected = entry ? 0 : -ENOENT;
    struct routes_key hop = key;

    if (key.what == ROUTES_ROUTE && key.hop) {
        hop.hop = 0;
        expected = list_find(&hop) ? -EINVAL : -ENOENT;
        CHECK(routes_remove(r, &shape, (u8 *)&key, 0) == expected);
        return;
    }
    CHECK(routes_remove(r, &shape, (u8 *)&key, 0) == expected);
    for (; (entry = list_find(&hop)); hop.hop++) {
        entry->there = 0;
        if (key.what != ROUTES_ROUTE)
            break;
    }
}

static void compare_listing(struct routes *r)
{
    struct routes_key key;
    struct routes_value value;
    u64 cursor = 0, seen = 0, there = 0;

    while (routes_next(r, &shape, &cursor, (u8 *)&key, (u8 *)&value, 0) == 0) {
        const struct entry *entry = list_find(&key);

        seen++;
        CHECK(entry && !memcmp(&entry->value, &value, sizeof(value)));
    }
    for (u32 i = 0; i < listed; i++) {
        there += (u64)list[i].there;
        if (list[i].there) {
            CHECK(routes_get(r, &shape, (u8 *)&list[i].key, (u8 *)&value, 0) == 0);
            CHECK(!memcmp(&list[i].value, &value, sizeof(value)));
        }
    }
    CHECK(seen == there && routes_count(r, &shape, 0) == there);
}

static void wrong_entries(struct routes *r)
{
    struct routes_value value = { .type = 1 };
    struct routes_key wrong[] = {
        { .what = 0 },
        { .what = 4 },
        { .what = ROUTES_PORT, .number = 0 },
        { .what = ROUTES_PORT, .number = ROUTES_PORTS + 1 },
        { .what = ROUTES_ROUTE, .family = 5 },
        { .what = ROUTES_ROUTE, .family = 4, .bits = 33 },
        { .what = ROUTES_ROUTE, .family = 6, .bits = 129 },
        { .what = ROUTES_NEIGHBOUR, .family = 0 },
    };

    for (u32 i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        CHECK(routes_set(r, &shape, (u8 *)&wrong[i], (u8 *)&value, 0) == -EINVAL);
        CHECK(routes_get(r, &shape, (u8 *)&wrong[i], (u8 *)&value, 0) == -ENOENT);
        CHECK(routes_remove(r, &shape, (u8 *)&wrong[i], 0) < 0);
    }
}

int main(void)
{
    struct routes r;

    CHECK(routes_create(&r, &shape, &check_config, NULL) == 0);
    wrong_entries(&r);
    for (u32 round = 0; round < 6000; round++) {
        struct routes_key key = draw_route();

        if (draw(3) == 0 && listed)
            key = list[draw(listed)].key;
        else if (draw(4) == 0)
            key = (struct routes_key){ .what = ROUTES_NEIGHBOUR, .family = draw(2) ? 4 : 6, .number = (u32)draw(3),
                                       .address = { [3] = (u8)draw(256) } };
        if (key.what == ROUTES_ROUTE && draw(3) == 0)
            key.hop = (u8)draw(4);
        if (draw(5))
            set(&r, key);
        else
            remove_key(&r, key);
        if (round % 8 == 0)
            compare_lookups(&r);
        if (round % 200 == 0)
            compare_listing(&r);
    }
    compare_listing(&r);
    routes_destroy(&r, &shape);
    CHECK(routes_create(&r, &(struct shape){ .key_bytes = 24, .value_bytes = 64 }, &check_config, NULL) == -EINVAL);
    return check_report();
}
