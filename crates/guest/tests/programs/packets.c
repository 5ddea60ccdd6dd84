/* Receives by a socket of packets of its own, in the way that its first argument names, and prints how many packets and
 * the sum of their bytes. It ends when its interface is gone.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

static unsigned packets;
static unsigned long sum, stamps;

static void count(const uint8_t *data, size_t length)
{
    packets++;
    for (size_t i = 0; i < length; i++)
        sum += data[i];
}

static void must(int right, const char *what)
{
    if (!right) {
        printf("%s: %s\n", what, strerror(errno));
        exit(1);
    }
}

/* With control messages: the stamp, and the lengths. */
static ssize_t message(int fd, uint8_t *data, size_t size)
{
    char control[256];
    struct sockaddr_ll name;
    struct iovec part[2] = {{data, 20}, {data + 20, size - 20}};
    struct msghdr head = {.msg_name = &name, .msg_namelen = sizeof name, .msg_iov = part, .msg_iovlen = 2,
                          .msg_control = control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(fd, &head, 0);

    if (got < 0)
        return got;
    must(head.msg_namelen == sizeof name && name.sll_ifindex == 1 && name.sll_hatype == 1, "name");
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&head); one; one = CMSG_NXTHDR(&head, one)) {
        if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SO_TIMESTAMPNS)
            stamps += (unsigned long)((struct timespec *)(void *)CMSG_DATA(one))->tv_nsec;
        else if (one->cmsg_level == SOL_PACKET && one->cmsg_type == PACKET_AUXDATA)
            must(((struct tpacket_auxdata *)(void *)CMSG_DATA(one))->tp_snaplen == got, "auxdata");
        else
            must(0, "control message");
    }
    return got;
}

static void receive(int fd, const char *how)
{
    static uint8_t data[65536];

    for (;;) {
        ssize_t got = -1;

        if (!strcmp(how, "select")) {
            fd_set reads;

            FD_ZERO(&reads);
            FD_SET(fd, &reads);
            if (select(fd + 1, &reads, NULL, NULL, NULL) < 1 || !FD_ISSET(fd, &reads))
                continue;
            got = read(fd, data, sizeof data);
        } else if (!strcmp(how, "poll")) {
            struct pollfd one = {.fd = fd, .events = POLLIN};

            if (poll(&one, 1, 100) < 1 || !(one.revents & POLLIN))
                continue;
            ssize_t first = recv(fd, data, 1, MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC);
            got = recv(fd, data, sizeof data, MSG_DONTWAIT);
            must(first == got, "peek");
        } else if (!strcmp(how, "message")) {
            got = message(fd, data, sizeof data);
        } else {
            got = recvfrom(fd, data, sizeof data, 0, NULL, NULL);
        }
        if (got < 0 && errno == ENETDOWN)
            return;
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            must(0, "receiving");
        if (got > 0)
            count(data, (size_t)got);
    }
}

static void ring(int fd, int version, unsigned blocks)
{
    struct tpacket_req3 asked = {.tp_block_size = 8192, .tp_block_nr = blocks, .tp_frame_size = 2048,
                                 .tp_frame_nr = blocks * 4};
    size_t length = (size_t)asked.tp_block_size * blocks;
    unsigned next = 0;

    must(!setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version), "version");
    asked.tp_frame_nr++;
    must(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &asked, sizeof asked) < 0 && errno == EINVAL, "sizes");
    asked.tp_frame_nr--;
    must(!setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &asked, sizeof asked), "ring");
    uint8_t *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(memory != MAP_FAILED, "mmap");
    for (;;) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        int ready = poll(&one, 1, -1);

        if (ready > 0 && (one.revents & POLLERR))
            return;
        for (;;) {
            uint8_t *at = memory + (size_t)next * (version == TPACKET_V3 ? 8192 : 2048);

            if (version == TPACKET_V3) {
                struct tpacket_block_desc *block = (void *)at;

                if (!(block->hdr.bh1.block_status & TP_STATUS_USER))
                    break;
                uint8_t *packet = at + block->hdr.bh1.offset_to_first_pkt;
                for (unsigned i = 0; i < block->hdr.bh1.num_pkts; i++) {
                    struct tpacket3_hdr *head = (void *)packet;

                    count(packet + head->tp_mac, head->tp_snaplen);
                    must((i + 1 == block->hdr.bh1.num_pkts) == !head->tp_next_offset, "chain of packets");
                    packet += head->tp_next_offset;
                }
                block->hdr.bh1.block_status = TP_STATUS_KERNEL;
                next = (next + 1) % blocks;
            } else if (version == TPACKET_V2) {
                struct tpacket2_hdr *head = (void *)at;

                if (!(head->tp_status & TP_STATUS_USER))
                    break;
                count(at + head->tp_mac, head->tp_snaplen);
                head->tp_status = TP_STATUS_KERNEL;
                next = (next + 1) % asked.tp_frame_nr;
            } else {
                struct tpacket_hdr *head = (void *)at;

                if (!(head->tp_status & TP_STATUS_USER))
                    break;
                count(at + head->tp_mac, head->tp_snaplen);
                head->tp_status = TP_STATUS_KERNEL;
                next = (next + 1) % asked.tp_frame_nr;
            }
        }
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    struct sockaddr_ll name = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
                               .sll_ifindex = (int)if_nametoindex("@")};
    int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), on = 1;
    struct tpacket_stats told;
    socklen_t length = sizeof told;

    must(fd >= 0, "socket");
    if (!strcmp(how, "arp"))
        name.sll_protocol = htons(ETH_P_ARP);
    must(!bind(fd, (void *)&name, sizeof name), "bind");
    if (!strcmp(how, "message"))
        must(!setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) &&
                 !setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on),
             "options");
    if (!strcmp(how, "filter")) {
        /* tcp: the first 60 bytes of it (tcpdump -ddd -s 60 'ip proto 6') */
        struct sock_filter code[] = {{0x28, 0, 0, 12}, {0x15, 0, 3, 0x800}, {0x30, 0, 0, 23},
                                     {0x15, 0, 1, 6},  {0x6, 0, 0, 60},     {0x6, 0, 0, 0}};
        struct sock_fprog program = {6, code};

        must(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), "filter");
    }
    if (!strncmp(how, "ring", 4))
        ring(fd, how[4] - '1', how[5] ? 1 : 8);
    else
        receive(fd, how);
    must(!getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &told, &length), "statistics");
    printf("%u packets, sum %lu, stamps %lu, told %u\n", packets, sum, stamps, told.tp_packets);
    return 0;
}
