/* Sends a capture's packets over and over, as fast as one processor can: `send INTERFACE CAPTURE SECONDS`. Prints how
 * many were sent. Past the queueing discipline, 64 a system call; what does not go is tried again.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 4096, AT_ONCE = 64 };

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int words, char **word)
{
    static struct iovec part[MOST];
    static struct mmsghdr message[MOST];
    char error[PCAP_ERRBUF_SIZE];
    struct pcap_pkthdr *header;
    const u_char *data;
    int on = 1, count = 0;

    if (words != 4)
        return 2;
    pcap_t *capture = pcap_open_offline(word[2], error);
    if (!capture)
        return fprintf(stderr, "%s\n", error), 1;
    while (count < MOST && pcap_next_ex(capture, &header, &data) == 1) {
        void *copy = malloc(header->caplen);

        if (!copy)
            return 1;
        part[count] = (struct iovec){memcpy(copy, data, header->caplen), header->caplen};
        message[count].msg_hdr = (struct msghdr){.msg_iov = &part[count], .msg_iovlen = 1};
        count++;
    }
    struct sockaddr_ll to = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(ETH_P_ALL),
        .sll_ifindex = (int)if_nametoindex(word[1]),
    };
    int wire = socket(AF_PACKET, SOCK_RAW, 0); /* receives nothing */
    if (!count || wire < 0 || bind(wire, (struct sockaddr *)&to, sizeof to) ||
        setsockopt(wire, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on)) {
        perror("send");
        return 1;
    }
    double begin = now(), end = begin + atof(word[3]), last = begin;
    unsigned long sent = 0;
    for (int at = 0; last < end; last = now()) {
        int some = count - at < AT_ONCE ? count - at : AT_ONCE;
        int done = sendmmsg(wire, message + at, (unsigned)some, 0);

        if (done < 0 && errno != ENOBUFS && errno != EAGAIN) {
            perror("sendmmsg");
            return 1;
        }
        sent += done > 0 ? (unsigned long)done : 0;
        at = done > 0 ? (at + done) % count : at;
    }
    printf("%lu %f\n", sent, last - begin);
    return 0;
}
