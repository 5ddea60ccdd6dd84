/* Handles: made, set up, closed. */
#include "pcap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct handle *handles;

int mr_is_chain(const char *device)
{
    return device && device[0] == '@';
}

/* Of a program that has loaded libpcap itself (perl's Net::Pcap), that is not in the scope that we stand in. */
void *mr_real(const char *name)
{
    static const char *const names[] = {"libpcap.so.0.8", "libpcap.so.1"};
    static void *library;
    void *real = dlsym(RTLD_NEXT, name);

    for (unsigned i = 0; !real && !library && i < 2; i++)
        library = dlopen(names[i], RTLD_LAZY);
    return real || !library ? real : dlsym(library, name);
}

struct handle *mr_handle(const pcap_t *pcap)
{
    for (struct handle *handle = handles; handle; handle = handle->next)
        if (handle->pcap == pcap)
            return handle;
    return NULL;
}

struct handle *mr_open(uint32_t snaplen, int precision, char *error)
{
    struct handle *handle = calloc(1, sizeof *handle);
    pcap_t *(*dead)(int, int, unsigned) = REAL(pcap_open_dead_with_tstamp_precision);

    if (handle && dead)
        handle->pcap = dead(DLT_EN10MB, PCAP_SNAPLEN, (unsigned)precision);
    if (!handle || !handle->pcap) {
        if (error)
            snprintf(error, PCAP_ERRBUF_SIZE, "%s", dead ? "out of memory" : "this program has no libpcap");
        free(handle);
        return NULL;
    }
    handle->snaplen = snaplen && snaplen <= PCAP_SNAPLEN ? snaplen : PCAP_SNAPLEN;
    handle->precision = precision;
    handle->event = -1;
    handle->next = handles;
    handles = handle;
    return handle;
}

static struct handle *named(struct handle *handle, const char *device)
{
    if (handle)
        handle->sends = device[1] != '0';
    return handle;
}

int mr_say(struct handle *handle, const char *wrong)
{
    handle->wrong = wrong;
    return PCAP_ERROR;
}

char *pcap_geterr(pcap_t *pcap)
{
    struct handle *handle = mr_handle(pcap);

    return handle && handle->wrong ? (char *)(uintptr_t)handle->wrong : REAL(pcap_geterr)(pcap);
}

pcap_t *pcap_create(const char *device, char *error)
{
    if (!mr_is_chain(device))
        return REAL(pcap_create)(device, error);
    struct handle *handle = named(mr_open(0, PCAP_TSTAMP_PRECISION_MICRO, error), device);
    return handle ? handle->pcap : NULL;
}

pcap_t *pcap_open_live(const char *device, int snaplen, int promisc, int timeout, char *error)
{
    if (!mr_is_chain(device))
        return REAL(pcap_open_live)(device, snaplen, promisc, timeout, error);
    struct handle *handle = named(mr_open((uint32_t)snaplen, PCAP_TSTAMP_PRECISION_MICRO, error), device);
    if (handle && error)
        error[0] = '\0';
    return handle ? handle->pcap : NULL;
}

int pcap_activate(pcap_t *pcap)
{
    return mr_handle(pcap) ? 0 : REAL(pcap_activate)(pcap);
}

void pcap_close(pcap_t *pcap)
{
    for (struct handle **at = &handles; *at; at = &(*at)->next) {
        struct handle *handle = *at;

        if (handle->pcap != pcap)
            continue;
        *at = handle->next;
        if (handle->event >= 0)
            close(handle->event);
        free(handle->filter.bf_insns);
        free(handle);
        break;
    }
    REAL(pcap_close)(pcap);
}

int pcap_set_snaplen(pcap_t *pcap, int snaplen)
{
    struct handle *handle = mr_handle(pcap);

    if (!handle)
        return REAL(pcap_set_snaplen)(pcap, snaplen);
    handle->snaplen = snaplen > 0 && snaplen <= PCAP_SNAPLEN ? (uint32_t)snaplen : PCAP_SNAPLEN;
    return 0;
}

int pcap_snapshot(pcap_t *pcap)
{
    struct handle *handle = mr_handle(pcap);

    return handle ? (int)handle->snaplen : REAL(pcap_snapshot)(pcap);
}

int pcap_set_tstamp_precision(pcap_t *pcap, int precision)
{
    struct handle *handle = mr_handle(pcap);

    if (!handle)
        return REAL(pcap_set_tstamp_precision)(pcap, precision);
    handle->precision = precision;
    return 0;
}

int pcap_get_tstamp_precision(pcap_t *pcap)
{
    struct handle *handle = mr_handle(pcap);

    return handle ? handle->precision : REAL(pcap_get_tstamp_precision)(pcap);
}

/* What the writer of a capture asks the handle for is the precision that it was made with. */
struct pcap_dumper;

struct pcap_dumper *pcap_dump_open(pcap_t *pcap, const char *file)
{
    struct handle *handle = mr_handle(pcap);
    pcap_t *dead;

    if (!handle || handle->precision == PCAP_TSTAMP_PRECISION_MICRO)
        return REAL(pcap_dump_open)(pcap, file);
    dead = REAL(pcap_open_dead_with_tstamp_precision)(DLT_EN10MB, (int)handle->snaplen, (unsigned)handle->precision);
    struct pcap_dumper *dumper = dead ? REAL(pcap_dump_open)(dead, file) : NULL;
    if (dead)
        REAL(pcap_close)(dead);
    return dumper;
}

/* What only a device could mind. */
#define ACCEPT(name)                                                   \
    int name(pcap_t *pcap, int value)                                  \
    {                                                                  \
        return mr_handle(pcap) ? 0 : REAL(name)(pcap, value);          \
    }

ACCEPT(pcap_set_promisc)
ACCEPT(pcap_set_timeout)
ACCEPT(pcap_set_buffer_size)
ACCEPT(pcap_set_immediate_mode)
ACCEPT(pcap_set_tstamp_type)
ACCEPT(pcap_setdirection)

int pcap_set_rfmon(pcap_t *pcap, int on)
{
    return mr_handle(pcap) ? 0 : REAL(pcap_set_rfmon)(pcap, on);
}

int pcap_can_set_rfmon(pcap_t *pcap)
{
    return mr_handle(pcap) ? 0 : REAL(pcap_can_set_rfmon)(pcap);
}
