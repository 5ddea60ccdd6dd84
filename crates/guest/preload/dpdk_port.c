/* Receiving and transmitting: packets are copied into mbufs, and back when they are sent. */
#include "dpdk.h"

#include <rte_memcpy.h>

struct port mr_port[MR_PORTS];

/* Copies a packet into an mbuf, and into more of the same pool if it does not fit. */
static int fill(struct rte_mbuf *head, const struct mr_guest_packet *packet)
{
    struct rte_mbuf *mbuf = head;
    uint32_t done = 0;

    for (;;) {
        uint32_t part = RTE_MIN(packet->length - done, (uint32_t)rte_pktmbuf_tailroom(mbuf));

        rte_memcpy(rte_pktmbuf_mtod(mbuf, void *), packet->data + done, part);
        mbuf->data_len = (uint16_t)part;
        done += part;
        if (done == packet->length)
            break;
        mbuf->next = part ? rte_pktmbuf_alloc(head->pool) : NULL;
        if (!mbuf->next)
            return 0;
        mbuf = mbuf->next;
        mbuf->data_off = 0; /* headroom is the head's */
        mr_origin(mbuf)->turn = 0;
        head->nb_segs++;
    }
    head->pkt_len = done;
    return 1;
}

static uint16_t take(struct mr_guest_port *port, struct queue *queue, struct rte_mbuf **mbufs, uint16_t most)
{
    uint32_t count = RTE_MIN(port->count, MR_GUEST_BURST);
    uint32_t *cursor = &port->cursor[queue->port];
    uint16_t got = 0;

    most = RTE_MIN(most, count - RTE_MIN(*cursor, count));
    if (rte_mempool_get_bulk(queue->pool, (void **)mbufs, most)) {
        queue->nombuf++;
        return 0;
    }
    for (; *cursor < count && got < most; ++*cursor) {
        struct mr_guest_packet *packet = &port->packet[*cursor];
        struct rte_mbuf *mbuf = mbufs[got];

        if (packet->port != queue->port)
            continue;
        port->next++;
        rte_pktmbuf_reset(mbuf);
        mbuf->port = queue->port;
        *mr_origin(mbuf) = (struct origin){port->turn, *cursor};
        packet->fate = MR_GUEST_KEEP;
        port->kept++;
        if (!fill(mbuf, packet)) {
            /* Freed here, it is dropped, as by a device without descriptors. */
            queue->nombuf++;
            rte_pktmbuf_free(mbuf);
            if (rte_mempool_get(queue->pool, (void **)&mbufs[got])) {
                ++*cursor;
                return got;
            }
            continue;
        }
        queue->bytes[RECEIVED] += packet->length;
        got++;
    }
    if (got < most)
        rte_mempool_put_bulk(queue->pool, (void **)&mbufs[got], most - got);
    queue->packets[RECEIVED] += got;
    return got;
}

uint16_t mr_receive(void *queue_of, struct rte_mbuf **mbufs, uint16_t most)
{
    struct queue *queue = queue_of;
    struct mr_guest_port *port = mr_guest_port();
    uint16_t got = 0;

    if (most == 0)
        return 0;
    if (mr_of_worker(port) && queue->number == 0 && port->cursor[queue->port] < port->count)
        got = take(port, queue, mbufs, most);
    if (got) {
        queue->empty = 0;
        return got;
    }
    /* Another port may have what this one has not: a program that polls several gets round to it. */
    if (mr_of_worker(port) && port->next < port->count && queue->empty++ == 0)
        return 0;
    queue->empty = 0;
    port->begun = 1;
    port->held = 0;
    for (uint16_t i = 0; i < MR_PORTS; i++)
        port->held += mr_pool_held(mr_port[i].queue[0].pool);
    mr_guest_pause();
    return 0;
}

/* Writes what an mbuf holds to where its packet lies; false when it does not fit there. */
static int give(struct mr_guest_packet *packet, const struct rte_mbuf *mbuf)
{
    uint8_t *to = packet->data;

    if (mbuf->pkt_len > packet->room)
        return 0;
    for (const struct rte_mbuf *part = mbuf; part; part = part->next) {
        rte_memcpy(to, rte_pktmbuf_mtod(part, const void *), part->data_len);
        to += part->data_len;
    }
    /* What a capture cut off is still on the wire. */
    packet->wire = packet->wire - packet->length + mbuf->pkt_len;
    packet->length = mbuf->pkt_len;
    return 1;
}

/* The mbuf whose packet this is: of a clone (rte_pktmbuf_clone), the one that its bytes are in. */
static struct rte_mbuf *root(struct rte_mbuf *mbuf)
{
    return RTE_MBUF_CLONED(mbuf) ? rte_mbuf_from_indirect(mbuf) : mbuf;
}

/* Sends what is none of the burst's, or not in its order. */
static int send_other(const struct queue *queue, int after, const struct rte_mbuf *mbuf)
{
    enum { MOST = 64 };
    struct mr_guest_part part[MOST];
    uint32_t parts = 0;

    if (mbuf->pkt_len > UINT16_MAX || mbuf->nb_segs > MOST)
        return 1; /* no device could: it is taken and lost */
    for (; mbuf && parts < MOST; mbuf = mbuf->next)
        part[parts++] = (struct mr_guest_part){rte_pktmbuf_mtod(mbuf, const void *), mbuf->data_len};
    return mr_guest_send(queue->port, after, part, parts);
}

/* Whether a packet of the burst may leave as such: those behind it at this port leave behind it. */
static int in_order(struct queue *queue, uint32_t index)
{
    if (queue->after || (queue->left && index < queue->last)) {
        queue->after = 1;
        return 0;
    }
    queue->left = 1;
    queue->last = index;
    return 1;
}

uint16_t mr_transmit(void *queue_of, struct rte_mbuf **mbufs, uint16_t count)
{
    struct queue *queue = queue_of;
    /* Order is kept on the port, whichever queue of it is sent by. */
    struct queue *order = &mr_port[queue->port].queue[0];
    struct mr_guest_port *port = mr_guest_port();
    int worker = mr_of_worker(port);
    uint16_t done;

    if (worker && order->turn != port->turn) {
        order->turn = port->turn;
        order->left = order->after = 0;
    }
    for (done = 0; done < count; done++) {
        struct rte_mbuf *mbuf = mbufs[done], *of = root(mbuf);
        struct mr_guest_packet *packet = worker && mr_pooled(of->pool) ? mr_packet(port, of) : NULL;

        if (packet && in_order(order, mr_origin(of)->index) && give(packet, mbuf)) {
            mr_settle(port, packet, MR_GUEST_OUT + queue->port);
        } else {
            order->after |= worker && order->left;
            if (!send_other(queue, worker && order->after, mbuf))
                break;
            /* It has left, as another: what stays of it is freed below, which is no drop. */
            if (packet) {
                port->kept--;
                mr_origin(of)->turn = 0;
            }
        }
        queue->bytes[SENT] += mbuf->pkt_len;
    }
    queue->packets[SENT] += done;
    rte_pktmbuf_free_bulk(mbufs, done);
    return done;
}
