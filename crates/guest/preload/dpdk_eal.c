/* Initialisation: a guest has no huge pages, no devices and no other process to share with. What its command line
 * says of these is replaced; what it says of cores, logs and drivers stays.
 */
#include "dpdk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_mbuf_dyn.h>

/* Arguments of the whole, beyond the program's own. */
#define MOST 96

int mr_origin_offset;

/* Options that take a value in the next word, unless it follows behind `=`. */
static const char *const dropped[] = {
    "-m", "-n", "-r", "-a", "-b", "-w", "--allow", "--block", "--vdev", "--socket-mem", "--socket-limit",
    "--huge-dir", "--file-prefix", "--proc-type", "--base-virtaddr", "--iova-mode", "--huge-unlink",
    "--vfio-intr", "--vfio-vf-token", "--mbuf-pool-ops-name", "--huge-worker-stack",
};

/* Options without one, or whose value always follows behind `=`. */
static const char *const flags[] = {
    "--no-huge", "--in-memory", "--no-pci", "--no-shconf", "--no-hpet", "--legacy-mem", "--single-file-segments",
    "--match-allocations", "--create-uio-dev", "--telemetry", "--no-telemetry", "--huge-unlink",
    "--huge-worker-stack",
};

static int is(const char *word, const char *name)
{
    return !strcmp(word, name);
}

/* Words that this one takes away, itself included: 0, 1 or 2. */
static int taken(const char *word)
{
    size_t length = strcspn(word, "=");

    for (size_t i = 0; i < RTE_DIM(flags); i++)
        if (is(word, flags[i]))
            return 1;
    for (size_t i = 0; i < RTE_DIM(dropped); i++) {
        if (is(word, dropped[i]))
            return 2;
        if (word[1] == '-' ? word[length] && !strncmp(word, dropped[i], length) && !dropped[i][length]
                           : word[0] == '-' && word[2] && !strncmp(word, dropped[i], 2) && !dropped[i][2])
            return 1; /* the value stands in the same word: --vdev=x, -m512 */
    }
    return 0;
}

int rte_eal_init(int argc, char **argv)
{
    static const struct rte_mbuf_dynfield field = {
        .name = "millrace_origin",
        .size = sizeof(struct origin),
        .align = __alignof__(struct origin),
    };
    /* EAL keeps what it is given. */
    static char *words[MOST + 1], memory[32];
    const char *megabytes = getenv("MILLRACE_DPDK_MEMORY");
    const char *ours[] = {
        "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "--iova-mode=va", memory,
        "--vdev=net_null0,copy=0", "--vdev=net_null1,copy=0",
    };
    int count = 0, end;

    snprintf(memory, sizeof memory, "-m%s", megabytes ? megabytes : "256");
    words[count++] = argc > 0 ? argv[0] : (char[]){"dpdk"};
    for (size_t i = 0; i < RTE_DIM(ours); i++)
        words[count++] = (char *)(uintptr_t)ours[i];
    for (end = 1; end < argc && !is(argv[end], "--"); end++) {
        int skip = taken(argv[end]);

        if (skip == 2)
            end++;
        if (skip)
            continue;
        if (count == MOST) {
            fprintf(stderr, "millrace: more than %d arguments of EAL\n", MOST);
            return -1;
        }
        words[count++] = argv[end];
    }
    words[count] = NULL;
    mr_guest_port()->polls = 1;
    int result = REAL(rte_eal_init)(count, words);
    if (result < 0)
        return result;
    mr_origin_offset = rte_mbuf_dynfield_register(&field);
    if (mr_origin_offset < 0) {
        fprintf(stderr, "millrace: mbufs have no room for where a packet comes from\n");
        return -1;
    }
    /* What EAL has taken of the program's words: all before `--`, which then bears the program's name. */
    int used = end < argc ? end : argc - 1;
    if (argc > 0)
        argv[used] = argv[0];
    return used;
}
