/* Filters of sockets: classic BPF (McCanne and Jacobson, USENIX Winter 1993), as far as programs attach it. */
#include <arpa/inet.h>
#include <string.h>

#include "packet.h"

/* Ancillary data (linux/filter.h): what a filter asks for by an offset that no packet has. */
static int ancillary(uint32_t offset, const struct mr_guest_packet *packet, uint32_t *value)
{
    struct sockaddr_ll name;

    mr_socket_name(packet, &name);
    switch (offset) {
    case (uint32_t)(SKF_AD_OFF + SKF_AD_PROTOCOL):
        *value = ntohs(name.sll_protocol);
        return 1;
    case (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE):
        *value = name.sll_pkttype;
        return 1;
    case (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX):
        *value = (uint32_t)name.sll_ifindex;
        return 1;
    case (uint32_t)(SKF_AD_OFF + SKF_AD_HATYPE):
        *value = name.sll_hatype;
        return 1;
    case (uint32_t)(SKF_AD_OFF + SKF_AD_VLAN_TAG):
    case (uint32_t)(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT):
        *value = 0; /* tags stand in the packet */
        return 1;
    }
    return 0;
}

/* `size` bytes of the packet in network order; false beyond its end. */
static int load(const struct mr_guest_packet *packet, uint32_t offset, uint32_t size, uint32_t *value)
{
    uint32_t result = 0;

    if (offset >= (uint32_t)SKF_NET_OFF && ancillary(offset, packet, value))
        return 1;
    if (offset >= (uint32_t)SKF_NET_OFF)
        offset = offset - (uint32_t)SKF_NET_OFF + 14;
    else if (offset >= (uint32_t)SKF_LL_OFF)
        offset -= (uint32_t)SKF_LL_OFF;
    if (offset > packet->length || packet->length - offset < size)
        return 0;
    for (uint32_t i = 0; i < size; i++)
        result = result << 8 | packet->data[offset + i];
    *value = result;
    return 1;
}

static uint32_t arithmetic(uint16_t operation, uint32_t a, uint32_t b, int *wrong)
{
    switch (operation) {
    case BPF_ADD: return a + b;
    case BPF_SUB: return a - b;
    case BPF_MUL: return a * b;
    case BPF_OR: return a | b;
    case BPF_AND: return a & b;
    case BPF_XOR: return a ^ b;
    case BPF_LSH: return b < 32 ? a << b : 0;
    case BPF_RSH: return b < 32 ? a >> b : 0;
    case BPF_NEG: return -a;
    }
    *wrong = !b;
    if (!b)
        return 0;
    return operation == BPF_DIV ? a / b : a % b;
}

static int holds(uint16_t condition, uint32_t a, uint32_t b)
{
    switch (condition) {
    case BPF_JEQ: return a == b;
    case BPF_JGT: return a > b;
    case BPF_JGE: return a >= b;
    case BPF_JSET: return (a & b) != 0;
    }
    return 0;
}

uint32_t mr_filter(const struct sock_filter *filter, uint32_t count, const struct mr_guest_packet *packet)
{
    uint32_t a = 0, x = 0, scratch[BPF_MEMWORDS] = {0};
    const uint32_t sizes[4] = {4, 2, 1, 0};

    for (uint32_t at = 0; at < count; at++) {
        const struct sock_filter *one = &filter[at];
        uint32_t size = sizes[BPF_SIZE(one->code) >> 3], k = one->k, *cell = &scratch[k % BPF_MEMWORDS];
        uint32_t right = BPF_SRC(one->code) == BPF_X ? x : k;
        int wrong = 0;

        switch (BPF_CLASS(one->code)) {
        case BPF_LD:
            if (BPF_MODE(one->code) == BPF_ABS || BPF_MODE(one->code) == BPF_IND) {
                if (!load(packet, BPF_MODE(one->code) == BPF_IND ? k + x : k, size, &a))
                    return 0;
            } else {
                a = BPF_MODE(one->code) == BPF_IMM ? k : BPF_MODE(one->code) == BPF_MEM ? *cell : packet->wire;
            }
            break;
        case BPF_LDX:
            if (BPF_MODE(one->code) == BPF_MSH) {
                if (!load(packet, k, 1, &x))
                    return 0;
                x = (x & 15) * 4;
            } else {
                x = BPF_MODE(one->code) == BPF_IMM ? k : BPF_MODE(one->code) == BPF_MEM ? *cell : packet->wire;
            }
            break;
        case BPF_ST:
            *cell = a;
            break;
        case BPF_STX:
            *cell = x;
            break;
        case BPF_ALU:
            a = arithmetic(BPF_OP(one->code), a, right, &wrong);
            if (wrong)
                return 0;
            break;
        case BPF_JMP:
            if (BPF_OP(one->code) == BPF_JA && k >= count)
                return 0;
            at += BPF_OP(one->code) == BPF_JA ? k : holds(BPF_OP(one->code), a, right) ? one->jt : one->jf;
            break;
        case BPF_RET:
            return BPF_RVAL(one->code) == BPF_A ? a : k;
        case BPF_MISC:
            if (BPF_MISCOP(one->code) == BPF_TAX)
                x = a;
            else
                a = x;
            break;
        }
    }
    return 0;
}
