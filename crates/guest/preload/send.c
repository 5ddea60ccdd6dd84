/* Sending what is none of the burst's packets: into the port's ring, from which the host takes it. */
#include "receive.h"

#include <string.h>

/* Threads of the guest's may send at the same time. */
static int busy;

static void copy(struct mr_guest_port *port, uint32_t at, const void *from, uint32_t length)
{
    uint32_t place = at % MR_GUEST_SENT;
    uint32_t first = MR_GUEST_SENT - place < length ? MR_GUEST_SENT - place : length;

    memcpy(port->sent + place, from, first);
    memcpy(port->sent, (const uint8_t *)from + first, length - first);
}

int mr_guest_send(uint16_t out, int after, const struct mr_guest_part *part, uint32_t parts)
{
    struct mr_guest_port *port = mr_guest_port();
    struct mr_guest_sent header = {.port = out, .after = (uint16_t)after};
    uint32_t at, room;

    for (uint32_t i = 0; i < parts; i++)
        header.length += part[i].length;
    uint32_t whole = (uint32_t)((sizeof header + header.length + sizeof header - 1) & ~(sizeof header - 1));
    while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
        __builtin_ia32_pause();
    at = port->head;
    room = MR_GUEST_SENT - (at - __atomic_load_n(&port->tail, __ATOMIC_ACQUIRE));
    if (whole <= room) {
        copy(port, at, &header, sizeof header);
        uint32_t to = at + sizeof header;
        for (uint32_t i = 0; i < parts; to += part[i++].length)
            copy(port, to, part[i].data, part[i].length);
        __atomic_store_n(&port->head, at + whole, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
    return whole <= room;
}
