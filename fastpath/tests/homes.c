/* allocators whose numbers come home, against a model that scans: a lease has the number of the packet's
 * index that has been free the longest, and fails when that index has none. */
#include "../state/allocator.h"
#include "check.h"

enum { MOST = 200, NEVER, FREED, LEASED };

struct model {
    u64 stamp[MOST], since[MOST], order[MOST], value[MOST];
    int state[MOST];
    u64 clock, failed;
};

static u32 table[MOST];
static const u32 *const tables[] = { NULL, table };
static const struct mr_config homes_config = { .homes = tables };

static int leased(const struct model *m, const struct shape *s, u64 i, u64 now)
{
    return m->state[i] == LEASED &&
           !(s->expire_after && now >= m->stamp[i] && now - m->stamp[i] >= s->expire_after);
}

/* Whether number i has been free for longer than number j: one that never was leased before all others, then by
 * time; what expired before what was freed at the same time; the lower number, or what was freed first. */
static int longer(const struct model *m, const struct shape *s, u64 i, u64 j)
{
    u64 since[2], kind[2], last[2], both[2] = { i, j };

    for (int k = 0; k < 2; k++) {
        u64 n = both[k];

        kind[k] = m->state[n] == NEVER ? 0 : m->state[n] == LEASED ? 1 : 2;
        since[k] = kind[k] == 0 ? 0 : kind[k] == 1 ? m->stamp[n] + s->expire_after : m->since[n];
        last[k] = kind[k] == 2 ? m->order[n] : n;
    }
    if (!kind[0] != !kind[1])
        return !kind[0];
    if (since[0] != since[1])
        return since[0] < since[1];
    return kind[0] != kind[1] ? kind[0] < kind[1] : last[0] < last[1];
}

static s64 model_pick(const struct model *m, const struct shape *s, u32 home, u64 now)
{
    s64 best = -1;

    for (u64 i = 0; i < s->capacity; i++)
        if (table[i] == home && !leased(m, s, i, now) && (best < 0 || longer(m, s, i, (u64)best)))
            best = (s64)i;
    return best;
}

static void random_operations(u64 capacity, u32 homes, u64 expire_after)
{
    struct shape shape = { .key_bytes = 8, .value_bytes = 8, .capacity = capacity, .first = 1024,
                           .expire_after = expire_after, .homes = homes, .object = 1 };
    const struct shape *s = &shape;
    struct mr_packet pkt = { .time = 5000 };
    static struct model m;
    struct allocator a;

    memset(&m, 0, sizeof(m));
    for (u64 i = 0; i < capacity; i++) {
        m.state[i] = NEVER;
        table[i] = (u32)draw(homes);
    }
    CHECK(allocator_create(&a, s, &homes_config, NULL) == 0);
    for (u64 step = 0; step < 20000; step++) {
        u64 i = draw(capacity + 2), number = s->first + i, value = step, all = 0;
        int there = i < capacity && leased(&m, s, i, pkt.time);
        s64 pick;
        u8 *p;

        pkt.time += draw(20) ? draw(2) : draw(expire_after + 2);
        there = i < capacity && leased(&m, s, i, pkt.time);
        if (draw(4) == 0)
            allocator_age(&a, s, pkt.time);
        switch (draw(5)) {
        case 0:
        case 1:
            pkt.home = (u32)draw(homes + 1); /* one that there is not has no numbers */
            pick = model_pick(&m, s, pkt.home, pkt.time);
            CHECK((s64)allocator_allocator_lease(&a, s, (u8 *)&value, &pkt) == (pick < 0 ? -1 : (s64)s->first + pick));
            m.failed += pick < 0;
            if (pick >= 0) {
                m.state[pick] = LEASED;
                m.stamp[pick] = pkt.time;
                m.value[pick] = value;
            }
            break;
        case 2:
            p = allocator_allocator_refresh(&a, s, number, &pkt);
            CHECK(!p == !there && (!p || mr_load64(p) == m.value[i]));
            if (there)
                m.stamp[i] = pkt.time;
            break;
        case 3:
            CHECK(allocator_allocator_free(&a, s, number, &pkt) == (u64)there);
            if (there) {
                m.state[i] = FREED;
                m.since[i] = pkt.time;
                m.order[i] = m.clock++;
            }
            break;
        case 4:
            if (draw(4))
                break;
            CHECK(allocator_set(&a, s, (u8 *)&number, (u8 *)&value, pkt.time) == (i < capacity ? 0 : -ENOENT));
            if (i >= capacity)
                break;
            if (!there)
                m.stamp[i] = pkt.time;
            m.state[i] = LEASED;
            m.value[i] = value;
            break;
        }
        for (u64 j = 0; step % 128 == 0 && j < capacity; j++)
            all += leased(&m, s, j, pkt.time);
        CHECK(step % 128 || allocator_count(&a, s, pkt.time) == all);
    }
    CHECK(allocator_full(&a, s, pkt.time) == m.failed && m.failed > 0);
    allocator_destroy(&a, s);
}

/* A table that is missing, or that names an index that there is not; and one that workers share. */
static void refused_declarations(void)
{
    struct shape s = { .value_bytes = 8, .capacity = 4, .homes = 2, .object = 1 };
    struct mr_config none = { 0 };
    struct allocator a;

    for (u32 i = 0; i < 4; i++)
        table[i] = i % 2;
    CHECK(allocator_create(&a, &s, &none, NULL) == -EINVAL);
    s.object = 0;
    CHECK(allocator_create(&a, &s, &homes_config, NULL) == -EINVAL);
    s.object = 1;
    table[3] = 2;
    CHECK(allocator_create(&a, &s, &homes_config, NULL) == -EINVAL);
    table[3] = 0;
    s.shared = 1;
    CHECK(allocator_create(&a, &s, &homes_config, NULL) == -EINVAL);
    s.shared = 0;
    CHECK(allocator_create(&a, &s, &homes_config, NULL) == 0);
    allocator_destroy(&a, &s);
}

int main(void)
{
    random_operations(1, 1, 50);
    random_operations(10, 3, 30);
    random_operations(100, 8, 400);
    random_operations(200, 200, 300);
    random_operations(60, 4, 0);
    refused_declarations();
    return check_report();
}
