/* Receiving by libpcap: every way it has, over one that takes the next packet that the filter wants. */
#include "pcap.h"

#include <stdlib.h>
#include <string.h>

static struct pcap_pkthdr header_of(const struct handle *handle, const struct mr_guest_packet *packet)
{
    /* Divisions by constants are multiplications. */
    uint64_t rest = packet->time % 1000000000;
    struct pcap_pkthdr header = {
        .ts = {
            .tv_sec = (time_t)(packet->time / 1000000000),
            .tv_usec = (suseconds_t)(handle->precision == PCAP_TSTAMP_PRECISION_NANO ? rest : rest / 1000),
        },
        .caplen = packet->length < handle->snaplen ? packet->length : handle->snaplen,
        .len = packet->wire,
    };

    return header;
}

/* The next packet of this burst that the filter wants. */
static const u_char *take(struct handle *handle, struct pcap_pkthdr *header)
{
    static __typeof__(&pcap_offline_filter) matches;
    struct mr_guest_packet *packet;

    while ((packet = mr_guest_take())) {
        /* A filter sees the packet as it came in, and what it answers is how much of it is wanted. */
        struct pcap_pkthdr whole = header_of(handle, packet);

        if (handle->filtered) {
            whole.caplen = packet->length;
            if (!matches)
                matches = REAL(pcap_offline_filter);
            int wanted = matches(&handle->filter, &whole, packet->data);
            if (!wanted)
                continue;
            whole = header_of(handle, packet);
            if (whole.caplen > (uint32_t)wanted)
                whole.caplen = (uint32_t)wanted;
        }
        handle->received++;
        *header = whole;
        return packet->data;
    }
    return NULL;
}

/* What pcap_dispatch() gives at the end: nothing, then a break, then that the interface is gone. */
static int ended(struct handle *handle)
{
    uint32_t how = mr_guest_port()->ended;

    if (how > 2)
        return mr_say(handle, "the chain has ended");
    return how > 1 ? PCAP_ERROR_BREAK : 0;
}

/* Hands out packets: at most `most` if that is above 0; those of one burst, or (`on`) of all that come. */
static int deliver(struct handle *handle, int most, int on, pcap_handler callback, u_char *user)
{
    int count = 0;

    for (;;) {
        struct pcap_pkthdr header;
        const u_char *data;

        while ((most <= 0 || count < most) && (data = take(handle, &header))) {
            callback(user, &header, data);
            count++;
            if (handle->stop)
                break;
        }
        if (handle->stop) {
            /* As libpcap: what was handed out is told first, the break at the next call. */
            if (count && !on)
                return count;
            handle->stop = 0;
            return PCAP_ERROR_BREAK;
        }
        if (most > 0 && count >= most)
            return on ? 0 : count;
        if (!on && count)
            return count;
        enum mr_guest_got got = mr_guest_wait();
        /* The chain has ended. pcap_loop() tells that as at the end of a capture. pcap_dispatch() tells nothing,
         * as an interface that falls silent; a break only to who has not ended of the signals of an end.
         */
        if (got == MR_GUEST_END && !handle->stop) {
            if (on)
                return 0;
            return ended(handle);
        }
        if (got != MR_GUEST_PACKETS && !on && !handle->stop)
            return 0;
    }
}

int pcap_loop(pcap_t *pcap, int count, pcap_handler callback, u_char *user)
{
    struct handle *handle = mr_handle(pcap);

    return handle ? deliver(handle, count, 1, callback, user) : REAL(pcap_loop)(pcap, count, callback, user);
}

int pcap_dispatch(pcap_t *pcap, int count, pcap_handler callback, u_char *user)
{
    struct handle *handle = mr_handle(pcap);

    return handle ? deliver(handle, count, 0, callback, user) : REAL(pcap_dispatch)(pcap, count, callback, user);
}

int pcap_next_ex(pcap_t *pcap, struct pcap_pkthdr **header, const u_char **data)
{
    struct handle *handle = mr_handle(pcap);

    if (!handle)
        return REAL(pcap_next_ex)(pcap, header, data);
    for (int waited = 0;;) {
        if (handle->stop) {
            handle->stop = 0;
            return PCAP_ERROR_BREAK;
        }
        *data = take(handle, &handle->header);
        *header = &handle->header;
        if (*data)
            return 1;
        if (waited)
            return 0;
        waited = 1;
        if (mr_guest_wait() == MR_GUEST_END) {
            int how = ended(handle);
            return how ? how : PCAP_ERROR_BREAK;
        }
    }
}

const u_char *pcap_next(pcap_t *pcap, struct pcap_pkthdr *header)
{
    struct pcap_pkthdr *found;
    const u_char *data;

    if (!mr_handle(pcap))
        return REAL(pcap_next)(pcap, header);
    if (pcap_next_ex(pcap, &found, &data) != 1)
        return NULL;
    *header = *found;
    return data;
}

void pcap_breakloop(pcap_t *pcap)
{
    struct handle *handle = mr_handle(pcap);

    if (handle)
        handle->stop = 1;
    else
        REAL(pcap_breakloop)(pcap);
}

int pcap_setfilter(pcap_t *pcap, struct bpf_program *program)
{
    struct handle *handle = mr_handle(pcap);
    /* an instruction: 16 bits of code, two jumps of 8, a constant of 32 */
    size_t bytes = program ? (size_t)program->bf_len * 8 : 0;
    void *copy;

    if (!handle)
        return REAL(pcap_setfilter)(pcap, program);
    copy = malloc(bytes ? bytes : 1);
    if (!copy || !program)
        return free(copy), PCAP_ERROR;
    memcpy(copy, program->bf_insns, bytes);
    free(handle->filter.bf_insns);
    handle->filter.bf_insns = copy;
    handle->filter.bf_len = program->bf_len;
    handle->filtered = 1;
    return 0;
}

int pcap_stats(pcap_t *pcap, struct pcap_stat *stat)
{
    struct handle *handle = mr_handle(pcap);

    if (!handle)
        return REAL(pcap_stats)(pcap, stat);
    memset(stat, 0, sizeof *stat);
    stat->ps_recv = handle->received;
    return 0;
}
