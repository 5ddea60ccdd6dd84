/* What libpcap says of devices: the chain is one, named @, without addresses; others cannot be reached. */
#include "pcap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

/* One interface, allocated as pcap_freealldevs() wants to free it. */
int pcap_findalldevs(pcap_if_t **all, char *error)
{
    pcap_if_t *chain = calloc(1, sizeof *chain);

    if (chain)
        chain->name = strdup("@");
    if (!chain || !chain->name) {
        free(chain);
        snprintf(error, PCAP_ERRBUF_SIZE, "out of memory");
        return PCAP_ERROR;
    }
    chain->flags = 0x36; /* up, running, connected (PCAP_IF_*) */
    *all = chain;
    return 0;
}

char *pcap_lookupdev(char *error)
{
    static char name[] = "@";

    (void)error;
    return name;
}

int pcap_lookupnet(const char *device, uint32_t *net, uint32_t *mask, char *error)
{
    if (!mr_is_chain(device))
        return REAL(pcap_lookupnet)(device, net, mask, error);
    *net = *mask = 0;
    return 0;
}

int pcap_setnonblock(pcap_t *pcap, int on, char *error)
{
    struct handle *handle = mr_handle(pcap);

    if (!handle)
        return REAL(pcap_setnonblock)(pcap, on, error);
    handle->nonblock = on;
    return 0;
}

int pcap_getnonblock(pcap_t *pcap, char *error)
{
    struct handle *handle = mr_handle(pcap);

    return handle ? handle->nonblock : REAL(pcap_getnonblock)(pcap, error);
}

/* A program that polls is to find its interface readable and ask for packets: that is where it yields. */
int pcap_get_selectable_fd(pcap_t *pcap)
{
    struct handle *handle = mr_handle(pcap);

    if (!handle)
        return REAL(pcap_get_selectable_fd)(pcap);
    if (handle->event < 0)
        handle->event = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
    return handle->event;
}

int pcap_fileno(pcap_t *pcap)
{
    return mr_handle(pcap) ? pcap_get_selectable_fd(pcap) : REAL(pcap_fileno)(pcap);
}

const struct timeval *pcap_get_required_select_timeout(pcap_t *pcap)
{
    return mr_handle(pcap) ? NULL : REAL(pcap_get_required_select_timeout)(pcap);
}

int pcap_list_tstamp_types(pcap_t *pcap, int **types)
{
    if (!mr_handle(pcap))
        return REAL(pcap_list_tstamp_types)(pcap, types);
    *types = NULL;
    return 0;
}

/* What is sent on @ or @1 leaves where packets from port 0 leave, on @0 where those from port 1 do. */
static int send(struct handle *handle, const void *data, size_t length)
{
    struct mr_guest_part part = {data, (uint32_t)length};

    if (length > UINT16_MAX)
        return mr_say(handle, "a packet of more than 65535 bytes cannot be sent");
    if (!mr_guest_send(handle->sends, 1, &part, 1))
        return mr_say(handle, "more packets are waiting to be sent than there is room for");
    return (int)length;
}

int pcap_inject(pcap_t *pcap, const void *data, size_t length)
{
    struct handle *handle = mr_handle(pcap);

    return handle ? send(handle, data, length) : REAL(pcap_inject)(pcap, data, length);
}

int pcap_sendpacket(pcap_t *pcap, const u_char *data, int length)
{
    struct handle *handle = mr_handle(pcap);

    if (!handle)
        return REAL(pcap_sendpacket)(pcap, data, length);
    return length < 0 || send(handle, data, (size_t)length) < 0 ? PCAP_ERROR : 0;
}
