/* Rings that packets are received into (packet(7), Documentation/networking/packet_mmap.rst). A ring is filled where
 * its program waits for packets, and nowhere else: what a kernel does by interrupts, this does in poll().
 */
#include <string.h>

#include <linux/if_ether.h>

#include "packet.h"

#define ALIGN(length, to) (((length) + (to)-1) & ~((to)-1))

uint32_t mr_ring_header(int version)
{
    switch (version) {
    case TPACKET_V1: return TPACKET_HDRLEN;
    case TPACKET_V2: return TPACKET2_HDRLEN;
    case TPACKET_V3: return TPACKET3_HDRLEN;
    }
    return 0;
}

/* Where a packet's bytes begin behind its header: the network header is aligned, and room before it for 16 bytes. */
static uint32_t place(const struct mr_ring *ring)
{
    return TPACKET_ALIGN(mr_ring_header(ring->version) + 16) - ETH_HLEN;
}

/* Bytes before the first packet of a block. */
static uint32_t before(const struct mr_ring *ring)
{
    return (uint32_t)ALIGN(sizeof(struct tpacket_block_desc), 8u) + ALIGN(ring->asked.tp_sizeof_priv, 8u);
}

int mr_ring_sane(const struct mr_ring *ring)
{
    const struct tpacket_req3 *asked = &ring->asked;
    uint32_t each = asked->tp_frame_size ? asked->tp_block_size / asked->tp_frame_size : 0;

    if (!asked->tp_block_size || asked->tp_block_size % 4096 || !each || asked->tp_frame_size % TPACKET_ALIGNMENT)
        return 0;
    if (asked->tp_frame_size < place(ring) + ETH_HLEN || (uint64_t)asked->tp_block_nr * each != asked->tp_frame_nr)
        return 0;
    if (ring->version == TPACKET_V3 &&
        (asked->tp_sizeof_priv > asked->tp_block_size / 2 ||
         before(ring) + place(ring) + ETH_HLEN > asked->tp_block_size))
        return 0;
    return 1;
}

/* A frame of version 1 or 2; false when the program has not given the next one back. */
static int frame(struct mr_socket *socket, const struct mr_guest_packet *packet, uint32_t length)
{
    struct mr_ring *ring = &socket->ring;
    uint32_t each = ring->asked.tp_block_size / ring->asked.tp_frame_size, at = place(ring);
    uint8_t *start = ring->memory + (size_t)(ring->next / each) * ring->asked.tp_block_size +
                     (size_t)(ring->next % each) * ring->asked.tp_frame_size;
    uint32_t room = ring->asked.tp_frame_size - at, header = 0;
    uint32_t snap = length < room ? length : room;

    if (ring->version == TPACKET_V1) {
        struct tpacket_hdr *head = (void *)start;

        if (__atomic_load_n(&head->tp_status, __ATOMIC_ACQUIRE) != TP_STATUS_KERNEL)
            return 0;
        header = TPACKET_ALIGN(sizeof *head);
        head->tp_len = packet->wire;
        head->tp_snaplen = snap;
        head->tp_mac = (uint16_t)at;
        head->tp_net = (uint16_t)(at + ETH_HLEN);
        head->tp_sec = (uint32_t)(packet->time / 1000000000);
        head->tp_usec = (uint32_t)(packet->time % 1000000000 / 1000);
    } else {
        struct tpacket2_hdr *head = (void *)start;

        if (__atomic_load_n(&head->tp_status, __ATOMIC_ACQUIRE) != TP_STATUS_KERNEL)
            return 0;
        header = TPACKET_ALIGN(sizeof *head);
        head->tp_len = packet->wire;
        head->tp_snaplen = snap;
        head->tp_mac = (uint16_t)at;
        head->tp_net = (uint16_t)(at + ETH_HLEN);
        head->tp_sec = (uint32_t)(packet->time / 1000000000);
        head->tp_nsec = (uint32_t)(packet->time % 1000000000);
        head->tp_vlan_tci = head->tp_vlan_tpid = 0;
    }
    mr_socket_name(packet, (void *)(start + header));
    memcpy(start + at, packet->data, snap);
    if (ring->version == TPACKET_V1)
        __atomic_store_n(&((struct tpacket_hdr *)(void *)start)->tp_status, TP_STATUS_USER, __ATOMIC_RELEASE);
    else
        __atomic_store_n(&((struct tpacket2_hdr *)(void *)start)->tp_status, TP_STATUS_USER, __ATOMIC_RELEASE);
    ring->next = (ring->next + 1) % ring->asked.tp_frame_nr;
    return 1;
}

/* A block of version 3 with what there is and fits; false when there is nothing, or no block. */
static int block(struct mr_socket *socket)
{
    struct mr_ring *ring = &socket->ring;
    uint8_t *start = ring->memory + (size_t)ring->next * ring->asked.tp_block_size;
    struct tpacket_block_desc *head = (void *)start;
    struct tpacket3_hdr *last = NULL;
    struct mr_guest_packet *packet;
    uint32_t at = before(ring), data = place(ring), count = 0, length;

    if (__atomic_load_n(&head->hdr.bh1.block_status, __ATOMIC_ACQUIRE) != TP_STATUS_KERNEL)
        return 0;
    while ((packet = mr_socket_look(socket, &length))) {
        uint32_t most = ring->asked.tp_block_size - before(ring) - data;
        uint32_t snap = length < most ? length : most;
        struct tpacket3_hdr *one = (void *)(start + at);

        if (count && (at + data > ring->asked.tp_block_size || ring->asked.tp_block_size - at - data < snap))
            break;
        memset(one, 0, sizeof *one);
        one->tp_sec = (uint32_t)(packet->time / 1000000000);
        one->tp_nsec = (uint32_t)(packet->time % 1000000000);
        one->tp_snaplen = snap;
        one->tp_len = packet->wire;
        one->tp_status = TP_STATUS_USER;
        one->tp_mac = (uint16_t)data;
        one->tp_net = (uint16_t)(data + ETH_HLEN);
        mr_socket_name(packet, (void *)((uint8_t *)one + TPACKET_ALIGN(sizeof *one)));
        memcpy((uint8_t *)one + data, packet->data, snap);
        if (last)
            last->tp_next_offset = (uint32_t)((uint8_t *)one - (uint8_t *)last);
        else
            head->hdr.bh1.ts_first_pkt =
                (struct tpacket_bd_ts){.ts_sec = one->tp_sec, {.ts_nsec = one->tp_nsec}};
        head->hdr.bh1.ts_last_pkt = (struct tpacket_bd_ts){.ts_sec = one->tp_sec, {.ts_nsec = one->tp_nsec}};
        last = one;
        count++;
        at = ALIGN(at + data + snap, 8u);
        mr_socket_taken(socket, packet);
    }
    if (!count)
        return 0;
    head->version = TPACKET_V3;
    head->offset_to_priv = (uint32_t)ALIGN(sizeof *head, 8u);
    head->hdr.bh1.num_pkts = count;
    head->hdr.bh1.offset_to_first_pkt = before(ring);
    head->hdr.bh1.blk_len = at;
    head->hdr.bh1.seq_num = ++ring->sequence;
    __atomic_store_n(&head->hdr.bh1.block_status, TP_STATUS_USER | TP_STATUS_BLK_TMO, __ATOMIC_RELEASE);
    ring->next = (ring->next + 1) % ring->asked.tp_block_nr;
    return 1;
}

int mr_ring_fill(struct mr_socket *socket)
{
    struct mr_guest_packet *packet;
    uint32_t length;
    int filled = 0;

    if (!socket->ring.memory)
        return 0;
    if (socket->ring.version == TPACKET_V3) {
        while (block(socket))
            filled = 1;
    } else {
        while ((packet = mr_socket_look(socket, &length)) && frame(socket, packet, length)) {
            mr_socket_taken(socket, packet);
            filled = 1;
        }
    }
    /* What is left has no room: the program is to make some. */
    return filled || mr_socket_look(socket, &length);
}
