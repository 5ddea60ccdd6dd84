/* hash, lru_hash, array and lpm against the kernel's own maps: the same random updates, lookups and
 * deletes give the same errors and values. Needs leave to make BPF maps; lpm needs a kernel from 6.13 on.
 */
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../state/array.h"
#include "../state/hash.h"
#include "../state/lpm.h"
#include "../state/lru_hash.h"
#include "check.h"

static int bpf(int command, union bpf_attr *attr) { return (int)syscall(SYS_bpf, command, attr, sizeof(*attr)); }

static int kernel_create(u32 type, const struct shape *s)
{
    union bpf_attr attr;

    memset(&attr, 0, sizeof(attr));
    attr.map_type = type;
    attr.key_size = s->key_bytes;
    attr.value_size = s->value_bytes;
    attr.max_entries = (u32)s->capacity;
    attr.map_flags = s->flags;
    return bpf(BPF_MAP_CREATE, &attr);
}

/* 0 or a negative errno */
static int kernel_element(int command, int map, const void *key, void *value, u64 flags)
{
    union bpf_attr attr;

    memset(&attr, 0, sizeof(attr));
    attr.map_fd = (u32)map;
    attr.key = (u64)(uintptr_t)key;
    attr.value = (u64)(uintptr_t)value;
    attr.flags = flags;
    return bpf(command, &attr) ? -errno : 0;
}

/* `keys`: keys that are drawn. `make`: turns a draw into a key. */
#define AGAINST_KERNEL(KIND, TYPE, KEYS, MAKE, ...)                                                  \
    do {                                                                                             \
        static const struct shape s = { __VA_ARGS__ };                                               \
        struct mr_packet pkt = { 0 };                                                                \
        int map = kernel_create(TYPE, &s);                                                           \
        struct KIND object;                                                                          \
                                                                                                     \
        CHECK(map >= 0 && KIND##_create(&object, &s, &check_config, NULL) == 0);                     \
        for (u64 step = 0; map >= 0 && step < 30000; step++) {                                       \
            u8 key[64] = { 0 }, ours[64], theirs[64] = { 0 }, *p;                                    \
            u64 word[8], token, flags = draw(3) ? 0 : draw(5);                                       \
            int error;                                                                               \
                                                                                                     \
            MAKE(key, draw(KEYS));                                                                   \
            mr_pad_key(word, key, s.key_bytes);                                                      \
            token = KIND##_token(&object, &s, word);                                                 \
            for (u32 i = 0; i < s.value_bytes; i++)                                                  \
                ours[i] = (u8)draw(256);                                                             \
            switch (draw(4)) {                                                                       \
            case 0:                                                                                  \
                error = kernel_element(BPF_MAP_LOOKUP_ELEM, map, key, theirs, 0);                    \
                p = KIND##_map_lookup_elem(&object, &s, word, token, &pkt);                          \
                CHECK((p == NULL) == (error != 0));                                                  \
                CHECK(!p || error || !memcmp(p, theirs, s.value_bytes));                             \
                break;                                                                               \
            case 1:                                                                                  \
            case 2:                                                                                  \
                if (flags == 4) /* BPF_F_LOCK: wants a lock in the value */                          \
                    break;                                                                           \
                error = kernel_element(BPF_MAP_UPDATE_ELEM, map, key, ours, flags);                  \
                CHECK(KIND##_map_update_elem(&object, &s, word, token, ours, flags, &pkt) ==         \
                      (u64)(s64)error);                                                              \
                break;                                                                               \
            case 3:                                                                                  \
                error = kernel_element(BPF_MAP_DELETE_ELEM, map, key, NULL, 0);                      \
                CHECK(KIND##_map_delete_elem(&object, &s, word, token, &pkt) == (u64)(s64)error);    \
                break;                                                                               \
            }                                                                                        \
        }                                                                                            \
        if (map >= 0)                                                                                \
            close(map);                                                                              \
        KIND##_destroy(&object, &s);                                                                 \
    } while (0)

#define NUMBER(key, n) mr_store32(key, (u32)(n))

/* Nested prefixes of few bits, one in a hundred too long. */
static void prefix(u8 *key, u64 n, u32 address_bytes)
{
    mr_store32(key, n % 100 == 99 ? 8 * address_bytes + 1 : (u32)(n % (8 * address_bytes + 1)));
    for (u32 i = 0; i < address_bytes; i++)
        key[4 + i] = n >> (i % 8) & 1 ? (u8)(1 << (n >> 8) % 8) : 0;
}

#define IPV4(key, n) prefix(key, n, 4)
#define IPV6(key, n) prefix(key, n, 16)

/* Whether this kernel heeds BPF_EXIST for LPM_TRIE, which it does from 6.13 on. */
static int lpm_heeds_flags(void)
{
    static const struct shape s = { .key_bytes = 8, .value_bytes = 4, .capacity = 4, .flags = 1 };
    int map = kernel_create(BPF_MAP_TYPE_LPM_TRIE, &s), heeds;
    u64 key = 8, value = 0;

    if (map < 0)
        return 0;
    heeds = kernel_element(BPF_MAP_UPDATE_ELEM, map, &key, &value, BPF_EXIST) == -ENOENT;
    close(map);
    return heeds;
}

int main(void)
{
    static const struct shape probe = { .key_bytes = 4, .value_bytes = 4, .capacity = 1 };
    int map = kernel_create(BPF_MAP_TYPE_ARRAY, &probe);

    if (map < 0) {
        printf("skipped: the kernel makes no BPF map: %s\n", strerror(errno));
        return check_report();
    }
    close(map);
    AGAINST_KERNEL(hash, BPF_MAP_TYPE_HASH, 60, NUMBER, .key_bytes = 4, .value_bytes = 8, .capacity = 40);
    AGAINST_KERNEL(hash, BPF_MAP_TYPE_HASH, 9, NUMBER, .key_bytes = 13, .value_bytes = 3, .capacity = 5,
                   .flags = BPF_F_NO_PREALLOC);
    /* Room for all keys: which entry the kernel would evict is its own affair. */
    AGAINST_KERNEL(lru_hash, BPF_MAP_TYPE_LRU_HASH, 60, NUMBER, .key_bytes = 4, .value_bytes = 8, .capacity = 8000);
    AGAINST_KERNEL(array, BPF_MAP_TYPE_ARRAY, 60, NUMBER, .key_bytes = 4, .value_bytes = 12, .capacity = 40);
    if (lpm_heeds_flags()) {
        AGAINST_KERNEL(lpm, BPF_MAP_TYPE_LPM_TRIE, 4000, IPV4, .key_bytes = 8, .value_bytes = 4, .capacity = 300, .flags = 1);
        AGAINST_KERNEL(lpm, BPF_MAP_TYPE_LPM_TRIE, 4000, IPV6, .key_bytes = 20, .value_bytes = 4, .capacity = 100, .flags = 1);
    } else {
        printf("skipped: lpm: this kernel's LPM_TRIE does not heed BPF_EXIST\n");
    }
    return check_report();
}
