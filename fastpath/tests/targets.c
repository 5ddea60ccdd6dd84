/* Maps of redirect targets: what redirect_map returns and where the packet then goes, for every kind, with
 * entries and without, for every flag.
 */
#include "../helpers/redirect.h"
#include "../state/cpumap.h"
#include "../state/devmap.h"
#include "../state/devmap_hash.h"
#include "../state/xskmap.h"
#include "check.h"

enum { CAPACITY = 5, PORTS = 4 };

static const struct shape shape = { .key_bytes = 4, .value_bytes = 4, .capacity = CAPACITY };
static const struct shape wide = { .key_bytes = 4, .value_bytes = 8, .capacity = CAPACITY };

static struct mr_packet packet(u32 port)
{
    struct mr_packet pkt = { .port = port, .ports = PORTS };

    mr_packet_begin(&pkt);
    return pkt;
}

static int set(struct devmap *m, u32 key, u32 ifindex)
{
    return devmap_set(m, &shape, (const u8 *)&key, (const u8 *)&ifindex, 0);
}

static void ports(void)
{
    struct devmap m;

    CHECK(!devmap_create(&m, &shape, &check_config, NULL));
    CHECK(!set(&m, 0, 1) && !set(&m, 1, PORTS) && !set(&m, 2, PORTS + 1) && !set(&m, 3, 0xffffffff));
    CHECK(set(&m, CAPACITY, 1) == -E2BIG);
    CHECK(devmap_count(&m, &shape, 0) == 4);
    for (u32 flags = 0; flags < 64; flags++) {
        for (u32 index = 0; index < 8; index++) {
            struct mr_packet pkt = packet(0);
            u64 r0 = devmap_redirect_map(&m, &shape, index, flags, &pkt);
            u64 expected = flags & ~0x1bu ? 0 : flags & 8 || index < 4 ? 4 : flags & 3;

            CHECK(r0 == expected);
            if (flags & 8 || r0 != 4)
                continue;
            mr_verdict_xdp(&pkt, r0);
            static const u32 out[] = { 0, PORTS - 1, PORTS, MR_NO_PORT };

            /* Ports that do not exist are the host's to find out. */
            CHECK(pkt.fate == MR_FORWARD);
            CHECK(pkt.out == out[index]);
        }
    }
    /* A call that finds nothing takes back what an earlier one named. */
    struct mr_packet pkt = packet(0);
    CHECK(devmap_redirect_map(&m, &shape, 0, 0, &pkt) == 4);
    CHECK(devmap_redirect_map(&m, &shape, 4, MR_XDP_PASS, &pkt) == MR_XDP_PASS);
    mr_verdict_xdp(&pkt, MR_XDP_REDIRECT);
    CHECK(pkt.fate == MR_FORWARD && pkt.out == MR_NO_PORT);
    /* No interface index of bpf_redirect names anything but a port. */
    for (u32 ifindex = 0xffffffe0; ifindex != 4; ifindex++) {
        helper_redirect(ifindex, 0, &pkt);
        mr_verdict_xdp(&pkt, MR_XDP_REDIRECT);
        CHECK(pkt.fate == MR_FORWARD);
        CHECK(pkt.out == (ifindex - 1 < PORTS ? ifindex - 1 : MR_NO_PORT) || pkt.out == ifindex - 1);
    }
    /* A value of 0 removes, as does removing; absent ones cannot be removed. */
    u32 key = 0, out;
    CHECK(!devmap_get(&m, &shape, (u8 *)&key, (u8 *)&out, 0) && out == 1);
    CHECK(!set(&m, 0, 0) && devmap_get(&m, &shape, (u8 *)&key, (u8 *)&out, 0) == -ENOENT);
    key = 1;
    CHECK(!devmap_remove(&m, &shape, (u8 *)&key, 0) && devmap_remove(&m, &shape, (u8 *)&key, 0) == -ENOENT);
    u64 cursor = 0, seen = 0;
    while (!devmap_next(&m, &shape, &cursor, (u8 *)&key, (u8 *)&out, 0))
        seen |= 1u << key;
    CHECK(seen == (1 << 2 | 1 << 3));
    devmap_destroy(&m, &shape);
}

/* A broadcast against the set of ports it means. */
static void broadcasts(void)
{
    struct devmap m;
    struct devmap_hash h;

    CHECK(!devmap_create(&m, &shape, &check_config, NULL));
    CHECK(!devmap_hash_create(&h, &shape, &check_config, NULL));
    for (u32 members = 0; members < 1 << PORTS; members++) {
        for (u32 i = 0; i < PORTS; i++) {
            u32 key = i * 77, value = i + 1;

            CHECK(!set(&m, i, members >> i & 1 ? i + 1 : 0));
            if (members >> i & 1)
                CHECK(!devmap_hash_set(&h, &shape, (u8 *)&key, (u8 *)&value, 0));
            else
                devmap_hash_remove(&h, &shape, (u8 *)&key, 0);
        }
        for (u32 exclude = 0; exclude < 2; exclude++) {
            for (u32 ingress = 0; ingress < PORTS; ingress++) {
                u32 meant = exclude ? members & ~(1u << ingress) : members;
                u32 others = ((1u << PORTS) - 1) & ~(1u << ingress);
                struct mr_packet pkt[2] = { packet(ingress), packet(ingress) };

                CHECK(devmap_redirect_map(&m, &shape, 0, 8 | exclude << 4, &pkt[0]) == 4);
                CHECK(devmap_hash_redirect_map(&h, &shape, 0, 8 | exclude << 4, &pkt[1]) == 4);
                for (u32 i = 0; i < 2; i++) {
                    mr_verdict_xdp(&pkt[i], 4);
                    if (!meant)
                        CHECK(pkt[i].fate == MR_DROP);
                    else if (!(meant & (meant - 1)))
                        CHECK(pkt[i].fate == MR_FORWARD && 1u << pkt[i].out == meant);
                    else
                        CHECK(meant == others ? pkt[i].fate == MR_FLOOD
                                              : pkt[i].fate == MR_FORWARD && pkt[i].out == MR_NO_PORT);
                }
            }
        }
    }
    devmap_hash_destroy(&h, &shape);
    devmap_destroy(&m, &shape);
}

static void hosts_and_users(void)
{
    struct cpumap c;
    struct xskmap x;
    struct devmap d;
    u32 key = 3, value = 192;
    u64 word = key;

    CHECK(!cpumap_create(&c, &shape, &check_config, NULL) && !xskmap_create(&x, &shape, &check_config, NULL));
    CHECK(!xskmap_map_lookup_elem(&x, &shape, &word, xskmap_token(&x, &shape, &word), NULL));
    CHECK(!cpumap_set(&c, &shape, (u8 *)&key, (u8 *)&value, 0));
    CHECK(!xskmap_set(&x, &shape, (u8 *)&key, (u8 *)&value, 0));
    CHECK(xskmap_map_lookup_elem(&x, &shape, &word, xskmap_token(&x, &shape, &word), NULL));
    for (u32 flags = 0; flags < 32; flags++) {
        for (u32 index = 0; index < 8; index++) {
            u64 expected = flags > 3 ? 0 : index == key ? 4 : flags;
            struct mr_packet pkt = packet(1);

            CHECK(cpumap_redirect_map(&c, &shape, index, flags, &pkt) == expected);
            mr_verdict_xdp(&pkt, 4);
            CHECK(pkt.fate == (expected == 4 ? MR_PASS : MR_FORWARD));
            pkt = packet(1);
            CHECK(xskmap_redirect_map(&x, &shape, index, flags, &pkt) == expected);
            mr_verdict_xdp(&pkt, 4);
            CHECK(pkt.fate == (expected == 4 ? MR_CONSUME : MR_FORWARD));
        }
    }
    cpumap_destroy(&c, &shape);
    xskmap_destroy(&x, &shape);
    /* A value that names a program is not taken. */
    u32 pair[2] = { 1, 0 };
    CHECK(!devmap_create(&d, &wide, &check_config, NULL));
    CHECK(!devmap_set(&d, &wide, (u8 *)&key, (u8 *)pair, 0));
    pair[1] = 9;
    CHECK(devmap_set(&d, &wide, (u8 *)&key, (u8 *)pair, 0) == -EINVAL);
    devmap_destroy(&d, &wide);
}

int main(void)
{
    ports();
    broadcasts();
    hosts_and_users();
    return check_report();
}
