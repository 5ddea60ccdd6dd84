/* Sends on the interface it receives from: what it has received, cut to 60 bytes, and answers with a number of its
 * own to the last. Ends by pcap_breakloop() when it has seen as many packets as its second argument says.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "pcap.h"

extern pcap_t *pcap_open_live(const char *, int, int, int, char *);
extern int pcap_loop(pcap_t *, int, pcap_handler, u_char *);
extern int pcap_inject(pcap_t *, const void *, size_t);
extern int pcap_sendpacket(pcap_t *, const u_char *, int);
extern void pcap_breakloop(pcap_t *);
extern int pcap_stats(pcap_t *, struct pcap_stat *);
extern char *pcap_geterr(pcap_t *);

static pcap_t *pcap;
static unsigned most, seen;

static void each(u_char *user, const struct pcap_pkthdr *header, const u_char *data)
{
    int length = header->caplen < 60 ? (int)header->caplen : 60;

    (void)user;
    if (pcap_inject(pcap, data, (size_t)length) != length)
        printf("inject: %s\n", pcap_geterr(pcap));
    if (++seen == most) {
        static u_char last[4] = {1, 2, 3, 4};

        printf("sendpacket %d\n", pcap_sendpacket(pcap, last, sizeof last));
        printf("long %d: ", pcap_sendpacket(pcap, data, 70000));
        printf("%s\n", pcap_geterr(pcap));
        pcap_breakloop(pcap);
    }
}

int main(int argc, char **argv)
{
    char error[PCAP_ERRBUF_SIZE];
    struct pcap_stat stat;

    pcap = argc > 2 ? pcap_open_live(argv[1], 65535, 1, 100, error) : NULL;
    if (!pcap)
        return 1;
    most = (unsigned)atoi(argv[2]);
    int ended = pcap_loop(pcap, -1, each, NULL);
    pcap_stats(pcap, &stat);
    printf("ended %d, received %u\n", ended, stat.ps_recv);
    return 0;
}
