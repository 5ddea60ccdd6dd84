/* The border between the host (Rust, a burst at a time) and an emitted module (C, a packet at a
 * time). Everything that crosses it is here; `dataplane` mirrors it in Rust, field by field, and
 * refuses a module whose MR_ABI differs.
 */
#ifndef MR_ABI_H
#define MR_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define MR_ABI 15u

/* What became of a packet: exactly one of these. */
enum mr_fate {
    MR_ABORTED = 0, /* the program said so (XDP_ABORTED), or gave a verdict that does not exist */
    MR_DROP = 1,    /* `out` is the index of the reason, 0 when none was given */
    MR_PASS = 2,    /* XDP_PASS: to the host's own network stack; `out` is the number of a HAND_OVER, else 0 */
    MR_FORWARD = 3, /* `out` is the port; if there is no such port, the host aborts the packet */
    MR_FLOOD = 4,   /* to every port but the ingress port */
    MR_CONSUME = 5, /* taken by the program; leaves no port */
};

/* One packet of a burst. The host owns the memory and fills the upper part; the module may move
 * `data`, `end` and `meta` within [floor, ceiling] and fills the lower part. Nobody else writes a
 * descriptor while a module has it; the packet's bytes may change under its hands.
 */
struct mr_packet {
    u8 *data;    /* first byte of the frame */
    u8 *end;     /* one past its last byte; end - data <= 0xffff */
    u8 *meta;    /* start of the metadata: floor <= meta <= data */
    u8 *floor;   /* the lowest address `meta` may take */
    u8 *ceiling; /* the highest address `end` may take */
    u8 *bared;   /* scratch: the lowest address `meta` has had; bytes below are anybody's, see bare.h */
    u64 time;    /* ns since the epoch: the capture's stamp, or the burst's clock; where workers share state the
                  * module moves it on to that of its place in the order, see sync/lock.h */
    u64 number;  /* ingress number from 0, over all ports */
    u32 port;    /* ingress port */
    u32 queue;   /* ingress queue */
    u32 ports;   /* how many ports there are */
    u32 cpu;     /* the worker, from 0 */

    u32 fate;     /* enum mr_fate */
    u32 out;      /* port or reason, as the fate says */
    u32 redirect; /* scratch: port named by bpf_redirect */
    u32 draws;    /* scratch: random draws so far; the host clears it */

    u64 commit; /* where workers share state: its place in the order of packets, see mr_shared; where state is replicated
                 * the host's: twice the number of its row, or of the last one before it, and 1 if it has a row */
    void *undo; /* scratch: where a reader keeps what it overwrites (sync/undo.h) */
    u32 core;   /* scratch: which of the workers that share state has it */
    u32 home;   /* the index of the indirection table that brought it to its worker; 0 where none did */
};

struct mr_instance; /* the state of one running copy, defined by the emitted module */

/* State that several instances have in common, one a worker; defined by the emitted module. Their functions
 * may then run at the same time on different threads, and lock by themselves. Sorted by `commit`, and where
 * that is equal by `number`, the packets of all workers are in an order in which one worker could have run
 * them, to the same results; it keeps each worker's own. No packet's `time` is then earlier than that of
 * one before it.
 */
struct mr_shared;

/* What the host decides when it makes an instance. */
struct mr_config {
    u64 hash_seed;              /* secret; must not be observable in any result */
    u64 sketch_seed;            /* recorded; sketches and random draws depend on it */
    u64 time;                   /* ns, the time of the first packet */
    const u8 *const *initial;   /* per object: content of a global, or NULL for zeros */
    struct mr_shared *shared;   /* made by `create_shared`; NULL for modules that share nothing */
    u32 workers;                /* how many instances share it, at least 1 */
    u32 worker;                 /* this instance, below `workers`; no other has the same number */
    /* Per object, for allocators whose numbers come home (state/homes.h): of each number, in order, the
     * `home` of packets that carry it. NULL for all others, and NULL where there are none. */
    const u32 *const *homes;
};

/* One entry of a ring buffer or another record for the host. */
typedef void mr_record_fn(void *context, u32 object, const u8 *bytes, u64 length);

/* The content of a state object in pieces: what `save` hands out, and what `load` takes to make the same object
 * again. First a head, then entries by place, what is free, or bytes; last an end, which no object may lack. A number that a kind does not
 * have is 0. All of it may come from a file that somebody has written: `load` refuses what no object can hold. */
enum mr_saved_what {
    MR_SAVED_HEAD = 0,  /* empties the object */
    MR_SAVED_ENTRY = 1, /* one entry; their places ascend */
    MR_SAVED_FREE = 2,  /* `length` free places from `place` on, in the order in which they are taken next */
    MR_SAVED_BYTES = 3, /* `length` bytes from byte `place` on */
    MR_SAVED_END = 4,
};

/* Times are ns. */
struct mr_saved {
    u32 what;     /* enum mr_saved_what */
    u32 callback; /* entry: the number of its timer's function, and 1; 1: none; 0: no timer is ready */
    u64 place;    /* head: as the kind says; else where the piece belongs */
    u64 stamp;    /* head: insertions that found it full; entry: last refresh; free: since when */
    u64 bound;    /* head: as the kind says; entry: by when it is looked at again, no later than it expires */
    u64 due;      /* head: timers that have fired; entry: when its timer fires, UINT64_MAX: it is not running */
    u64 order;    /* head: timers that were started; entry: which of these its timer is, or a prefix's bits */
    u64 length;   /* head: as the kind says; bytes at `value`, or places */
    const u8 *key;   /* `key_bytes` of an entry of a kind with keys */
    const u8 *value; /* `value_bytes` of an entry */
};

/* Takes one piece of `save`; what it returns but 0 ends it. */
typedef int mr_saved_fn(void *context, const struct mr_saved *piece);

/* One state object, for control and inspection between bursts. Functions that do not apply are
 * NULL. They return 0 or a negative errno. Keys and values are `key_bytes` and `value_bytes` long.
 */
struct mr_object {
    const char *name;
    const char *kind;
    u32 key_bytes;
    u32 value_bytes;
    u64 capacity;
    u64 bytes; /* memory mapped for it by `create`; of a shared one without what it has per worker */
    u64 (*count)(struct mr_instance *, u64 now);
    /* Keys of these have `key_bytes`; of a handler's `lpm` the number of bits that count (u32) stands before them. */
    int (*get)(struct mr_instance *, const u8 *key, u8 *value, u64 now);
    int (*set)(struct mr_instance *, const u8 *key, const u8 *value, u64 now);
    int (*remove)(struct mr_instance *, const u8 *key, u64 now);
    /* Visits entries in an order of the object's own. `*cursor` starts at 0; -ENOENT at the end. */
    int (*next)(struct mr_instance *, u64 *cursor, u8 *key, u8 *value, u64 now);
    /* Insertions so far that found every place taken: refused, or made in the place of another entry. Of ring
     * buffers, records that found too little room. */
    u64 (*full)(struct mr_instance *, u64 now);
    /* Places that are taken, in constant time: unlike `count` with those of entries that have expired and have not
     * been reclaimed yet. */
    u64 (*used)(struct mr_instance *, u64 now);
    /* Hands every finished record to `fn` and frees it. Ring buffers only. */
    void (*drain)(struct mr_instance *, u32 object, mr_record_fn *fn, void *context);
    /* All of its content, exactly. Expired entries that have not been reclaimed are among it. */
    int (*save)(struct mr_instance *, mr_saved_fn *fn, void *context);
    /* Takes the next piece; `now` is the stamp of entries that had none. After anything but 0 the object must not
     * be used. -EINVAL: no object has this; -E2BIG: it does not fit this one; -EEXIST: a place or a key comes twice;
     * -EDOM: made with other parameters. */
    int (*load)(struct mr_instance *, const struct mr_saved *piece, u64 now);
    /* Entries by place, a few at a time while packets come: hands out what is at the places from `from` to below `to`, and what was put
     * anywhere since the last call. 1: more was put than it remembers; who wants all begins again at place 0. Kinds whose entries keep
     * their places. Of an allocator whose numbers come home the places are the homes: hands out the leases of these, and behind them
     * the free numbers of each, in the order in which they are leased next. */
    int (*list)(struct mr_instance *, u64 from, u64 to, mr_saved_fn *fn, void *context);
    /* Puts in an entry that `save` or `list` of another instance handed out, beside what is there, with its stamp and its timer; entries
     * whose timers are due at one moment fire in the order in which they come. Of an allocator whose numbers come home also a number that is
     * free, which becomes the last of its home. `now` decides what has expired. -E2BIG: no place is free, and nothing was changed; -EEXIST:
     * it has such an entry; -EINVAL: no object has this. */
    int (*put)(struct mr_instance *, const struct mr_saved *piece, u64 now);
    /* Puts a table of rules in force from the next burst on (state/classifier.h); NULL: none. It is the host's, aligned to
     * 64 bytes, and stays as it is until another one is attached or the instance ends. -EINVAL: for another key or more classes. */
    int (*attach)(struct mr_instance *, const void *table);
    /* Places that have changed since they were handed out last (state/notes.h), oldest first and at most `most` of them, once the places from
     * `from` to below `to` were noted, too: what is at each, an entry whose `length` is 1 where its key is the one that was handed out last, or
     * a free place. Of an allocator `order` is the home of the number. How many are left. Only of objects that a module is made to note. */
    u64 (*changes)(struct mr_instance *, u64 from, u64 to, u64 most, mr_saved_fn *fn, void *context);
    u32 shared; /* 1: one for all workers, whichever instance is asked */
    u32 unused;
    /* Of numbers in its value, 8 bytes each, those of which parts are merged by the largest, and by their bits: a bit a number. Of all
     * others the sum counts. */
    u64 max, or;
};

struct mr_timer {
    u64 period; /* ns */
    void (*fire)(struct mr_instance *, struct mr_packet *);
    u32 once; /* 1: works on shared state, one worker fires it for all; 0: each does */
    u32 unused;
};

/* Timers in the values of maps. A burst function fires what is due before each of its packets by itself. */
struct mr_alarms {
    u64 next;  /* ns: none is due before; UINT64_MAX: none is running */
    u64 fired; /* times that one has fired */
};

/* How replicas are kept alike (crates/history): what of a packet reaches state is its row, of `bytes` bytes. Rows have one
 * order, and each replica runs all of them: its own packets' with `process`, others' with `replay`. `number` is the place
 * of a row in that order, from 0. */
struct mr_history {
    u32 bytes;
    u32 time_bits; /* of the time, at the row's start; 0: it has none */
    /* Fills a packet's row, without state; 0: the packet touches none, and has no row. */
    u32 (*extract)(struct mr_instance *, u32 program, const struct mr_packet *, u8 *row);
    /* Runs the program on a packet with its row, NULL where it has none. If the packet is not the one that the row was
     * made of, state is changed as the row says, and the packet is aborted. */
    void (*process)(struct mr_instance *, u32 program, struct mr_packet *, const u8 *row, u64 number);
    /* Does to state what `n` packets do, the first at place `number`. `time` and `ingress`, the time and the number of a
     * packet near them, say what a row's few bits of these are part of. -EINVAL: a row that is none; it has no effect. */
    int (*replay)(struct mr_instance *, const u8 *rows, u32 n, u64 number, u64 time, u64 ingress);
    /* The same row by row, without the prefetching passes, for measuring what they give. */
    int (*replay_plain)(struct mr_instance *, const u8 *rows, u32 n, u64 number, u64 time, u64 ingress);
    /* Both in passes, for `n` places of the order: packets[i] is NULL where the row is another replica's, rows[i] where
     * the packet has none; the first row that there is is at place `number`. -EINVAL: a row of no packet that is none;
     * nothing behind it has been done. */
    int (*burst)(struct mr_instance *, u32 program, struct mr_packet *const *packets, const u8 *const *rows, u32 n,
                 u64 number, u64 time, u64 ingress);
};

/* Packets of one instance that are transactions (sync/transact.h); written by its worker. */
struct mr_transact_counts {
    u64 commits; /* packets that committed beside others */
    u64 aborts;  /* attempts that did not commit */
    u64 holds;   /* attempts before which the packet took all words that it had met */
    u64 alone;   /* packets that ran as the only one at work */
    u64 graces;  /* waits for other cores' packets before an entry's expiry was decided */
};

/* For tests: what packets read and wrote, in a worker's order. */
enum mr_access_what {
    MR_ACCESS_READ = 0,    /* the word had this version */
    MR_ACCESS_WRITE = 1,   /* the word has had this version since */
    MR_ACCESS_EXPIRED = 2, /* an entry was removed for its age */
    /* These end what one packet, or one decision over an entry's expiry, did. `version`: packets that had run alone by then, this one
     * included. */
    MR_ACCESS_PACKET = 3,
    MR_ACCESS_ALONE = 4,
    MR_ACCESS_EVENT = 5,
};

struct mr_access {
    u32 what;       /* enum mr_access_what */
    u32 timed;      /* read: the packet's time may not be before that of the version's writer */
    u32 object;     /* expired: the map's place among the objects */
    u32 key_bytes;  /* expired */
    u64 word;       /* read, write: which; a number that means nothing but that */
    u64 version;
    u64 number;     /* packet, alone: `number` of the packet */
    u64 time;       /* ns; packet, alone, event, expired */
    const u8 *key;  /* expired */
};

typedef void mr_access_fn(void *context, const struct mr_access *access);

/* Of a module whose packets are transactions. */
struct mr_transact {
    u32 whys; /* reasons to run alone */
    u32 unused;
    const char *const *why; /* in words; of a step with its line */
    const struct mr_transact_counts *(*counts)(struct mr_instance *);
    const u64 *(*alone)(struct mr_instance *); /* packets that ran alone, by reason */
    /* Hands over what was noted since the last call; NULL in modules that are not for tests. */
    void (*accesses)(struct mr_instance *, mr_access_fn *fn, void *context);
};

/* For profiles: what a packet met when it did not commit, or had to run again as the only one at work. */
enum mr_conflict_what {
    MR_CONFLICT_ENTRY = 0,  /* another core wrote, removed or was at work on the entry */
    MR_CONFLICT_BUCKET = 1, /* another core filed or removed an entry of the bucket */
    MR_CONFLICT_FULL = 2,   /* the object was full, and no longer is */
    MR_CONFLICT_WRITE = 3,  /* the step is a writer's: the packet waited for all other cores */
    MR_CONFLICT_OTHER = 4,  /* what it met is over */
    MR_CONFLICT_ROOM = 5,   /* nobody, but the packet had no room for more, and ran alone */
    MR_CONFLICT_POOL = 6,   /* nobody, but the core had no entry or number of its own left, and the packet ran alone */
    MR_CONFLICT_WAYS = 7,   /* nobody, but the bucket was full, and the packet ran alone */
};

struct mr_conflict {
    u32 mine, theirs; /* steps, by their places among the sites; `theirs` is UINT32_MAX where it is unknown */
    u32 what;         /* enum mr_conflict_what */
    u32 key_bytes;
    u64 count;
    u64 ticks; /* of waiting, of the processor's clock; 0 where nothing was waited for */
    u64 votes; /* how many more of them than not were at this key */
    const u8 *key; /* of the entry that was met most; NULL: none */
};

typedef void mr_conflict_fn(void *context, const struct mr_conflict *conflict);

/* Of a module that is made for profiles. */
struct mr_profile {
    u32 sites;
    u32 unused;
    const char *const *site; /* FILE:LINE, the operation and the object, with a tab between them */
    void (*conflicts)(struct mr_instance *, mr_conflict_fn *fn, void *context);
};

/* For tests: numbers of which each core has a part (state/distributed.h), as one instance has them behind a packet. Pointers hold
 * until its next packet. */
struct mr_parts_seen {
    u32 object;  /* its place among the objects */
    u32 members;
    u32 workers; /* 0: it is one copy */
    u32 read;    /* the packet has read it */
    u64 at;      /* ns: the packet's time at which the others' parts were taken */
    u64 version; /* of its own part as it is published */
    const u64 *own;
    const u64 *others;   /* parts of the others as one */
    const u64 *versions; /* by worker: of which version; its own is 0 */
};

typedef void mr_parts_fn(void *context, const struct mr_parts_seen *seen);

struct mr_parts {
    /* Tells what each such object holds, since the last call. */
    void (*note)(struct mr_instance *, mr_parts_fn *fn, void *context);
    /* From here on an object holds this, and no part of another instance. -EINVAL: it is none of these. */
    int (*feed)(struct mr_instance *, u32 object, const u64 *own, const u64 *others);
};

/* What an emitted shared object exports: `const struct mr_module *millrace_module(void)`.
 * `start`, `stop` and timers get a descriptor without a packet (data == end) for time and draws.
 */
struct mr_module {
    u32 abi;
    u32 objects;
    u32 timers;
    u32 programs; /* packet entries, by order in the Program */
    u64 instance_bytes;
    u64 instance_align;
    const struct mr_object *object;
    const struct mr_timer *timer;
    int (*create)(struct mr_instance *, const struct mr_config *);
    void (*destroy)(struct mr_instance *);
    void (*start)(struct mr_instance *, struct mr_packet *); /* NULL if there is none */
    void (*stop)(struct mr_instance *, struct mr_packet *);  /* NULL if there is none */
    /* One function a packet entry: `n` packets, in order; sets the fate of each. */
    void (*const *burst)(struct mr_instance *, struct mr_packet *const *, u32 n);
    /* The same without the prefetching passes, for measuring what they give. */
    void (*const *burst_plain)(struct mr_instance *, struct mr_packet *const *, u32 n);
    /* Timers of maps, and what fires those that are due at a descriptor's time when no packet comes; both
     * NULL where there are none. */
    const struct mr_alarms *(*alarms)(struct mr_instance *);
    void (*alarm)(struct mr_instance *, struct mr_packet *);
    /* What instances have in common: its size, 0 for none, and what makes it before and unmakes it behind
     * them. The host allocates it, zeroed. */
    u64 shared_bytes;
    u64 shared_align;
    int (*create_shared)(struct mr_shared *, const struct mr_config *);
    void (*destroy_shared)(struct mr_shared *);
    u32 start_once; /* 1: `start` works on shared state, one worker calls it for all */
    u32 stop_once;
    const struct mr_history *history; /* NULL where state is not replicated */
    const struct mr_transact *transact; /* NULL where packets are no transactions */
    const struct mr_profile *profile;   /* NULL but in modules for profiles of workers that share state */
    const struct mr_parts *parts; /* NULL in modules that are not for tests */
};

#endif
