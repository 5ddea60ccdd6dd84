/* The least that a program of libpcap can do: counts. `count INTERFACE`. */
#include <pcap/pcap.h>
#include <signal.h>
#include <stdio.h>

static pcap_t *source;
static unsigned long packets;

static void stop(int number)
{
    (void)number;
    pcap_breakloop(source);
}

static void count(u_char *user, const struct pcap_pkthdr *header, const u_char *data)
{
    (void)user;
    (void)header;
    packets += data != NULL;
}

int main(int words, char **word)
{
    char error[PCAP_ERRBUF_SIZE];

    if (words != 2)
        return 2;
    source = pcap_open_live(word[1], 65535, 1, 100, error);
    if (!source)
        return fprintf(stderr, "%s\n", error), 1;
    signal(SIGINT, stop);
    pcap_loop(source, -1, count, NULL);
    fprintf(stderr, "%lu packets captured\n", packets);
    return 0;
}
