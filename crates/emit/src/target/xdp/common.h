#define MARKS ((SLOTS + 7) / 8)
#define SLOT_BYTES (SLOTS * ROW)
#define PREFIX (34 + MARKS + SLOT_BYTES)
#define FLAG_TOUCH 1
#define FLAG_BEAT 2
#define LAST (~0ull - 1)
#define GAP (1ull << 38)
#define TIME_MASK ((1ull << 40) - 1)

/* What a prefix begins with; numbers are big-endian. */
struct prefix {
	u8 to[4];
	u16 core;
	u8 from[4];
	u16 port;
	u16 type;
	u8 flags;
	u8 slots;
	u8 row_bytes;
	u8 index;
	u64 sequence;
	u64 stamp;
	u8 marks[MARKS];
} __attribute__((packed));

/* Forgets what the compiler knows of a number, so that a bound is tested in the register that is used. */
#define BARE(x) asm volatile("" : "+r"(x))
