/* libpcap as far as it is interposed: its types (their layout is its ABI, unchanged since 1.0), and what stands
 * behind a handle of ours. A handle is a real one of pcap_open_dead(), so that everything that is not about
 * receiving (compiling filters, link types, writing captures) is libpcap's own.
 */
#ifndef MR_GUEST_PCAP_H
#define MR_GUEST_PCAP_H

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <sys/time.h>

#include "receive.h"

typedef struct pcap pcap_t;
typedef unsigned char u_char;

struct bpf_insn;

struct bpf_program {
    unsigned bf_len;
    struct bpf_insn *bf_insns;
};

struct pcap_pkthdr {
    struct timeval ts;
    uint32_t caplen;
    uint32_t len;
};

struct pcap_stat {
    unsigned ps_recv;
    unsigned ps_drop;
    unsigned ps_ifdrop;
};

struct pcap_addr;

typedef struct pcap_if {
    struct pcap_if *next;
    char *name;
    char *description;
    struct pcap_addr *addresses;
    uint32_t flags;
} pcap_if_t;

typedef void (*pcap_handler)(u_char *, const struct pcap_pkthdr *, const u_char *);

enum {
    PCAP_ERROR = -1,
    PCAP_ERROR_BREAK = -2,
    PCAP_ERROR_NO_SUCH_DEVICE = -5,
    PCAP_ERRBUF_SIZE = 256,
    PCAP_SNAPLEN = 262144, /* libpcap's largest */
    DLT_EN10MB = 1,
    PCAP_TSTAMP_PRECISION_MICRO = 0,
    PCAP_TSTAMP_PRECISION_NANO = 1,
};

/* A capture of the chain's packets. */
struct handle {
    struct handle *next;
    pcap_t *pcap; /* what the program holds */
    uint32_t snaplen;
    int precision;
    int nonblock;
    int event; /* always readable, for programs that poll; -1: not asked for yet */
    volatile int stop;
    int filtered;
    struct bpf_program filter; /* a copy: the program may free its own */
    unsigned received;
    uint16_t sends; /* the chain's port that sent packets leave at */
    const char *wrong; /* what pcap_geterr() tells, if the last fault was ours */
    struct pcap_pkthdr header; /* what pcap_next_ex() points to */
};

/* Ours, or NULL: then libpcap's own function is meant. */
struct handle *mr_handle(const pcap_t *pcap);

/* A new one; NULL with the reason in `error`. */
struct handle *mr_open(uint32_t snaplen, int precision, char *error);

/* Notes what went wrong with a handle; gives PCAP_ERROR. */
int mr_say(struct handle *handle, const char *wrong);

/* Whether a name is the chain's interface: @, or @ and more. */
int mr_is_chain(const char *device);

/* The function of this name that would have been called without us. */
void *mr_real(const char *name);
#define REAL(name) ((__typeof__(&name))mr_real(#name))

/* libpcap's functions that we call. */
pcap_t *pcap_open_dead_with_tstamp_precision(int linktype, int snaplen, unsigned precision);
int pcap_offline_filter(const struct bpf_program *program, const struct pcap_pkthdr *header, const u_char *packet);

#endif
