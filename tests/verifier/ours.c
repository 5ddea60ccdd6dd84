/* Programs that say of themselves whether they are safe and what they return, in the form in which the kernel's
   self-tests do: each is about one thing that the checker knows, once just inside and once just outside. */
#include <linux/bpf.h>

#define NOTE(text) __attribute__((btf_decl_tag("comment:test_" text)))
#define SAFE(result) NOTE("expect_success") NOTE("retval=" #result)
#define UNSAFE NOTE("expect_failure")
#define TEST __attribute__((section("xdp"), used, naked)) int

struct {
    int (*type)[BPF_MAP_TYPE_ARRAY];
    int (*max_entries)[4];
    __u32 *key;
    __u64 *value;
} table __attribute__((section(".maps"), used));

#define CODE(text) asm volatile(text : : [table] "i"(&table))

/* r0 = a number below 2^32 that nothing is known of */
#define ANY "call 7;"

/* A load of this many bits at the offset in r1 of a value of eight bytes; the result is what is there, 0. */
#define AT_OFFSET(bits)                                                  \
    "r6 = r1; r1 = 1; *(u32 *)(r10 - 4) = r1; r2 = r10; r2 += -4;"       \
    "r1 = %[table] ll; call 1; if r0 != 0 goto +2; r0 = 99; exit;"       \
    "r0 += r6; r0 = *(u" #bits " *)(r0 + 0); exit;"

/* Nothing may come here. */
#define TRAP "r9 = 0; r0 = *(u8 *)(r9 + 0); exit;"

/* Division and remainder by any divisor. */
SAFE(0) TEST quotient_by_negative(void)
{
    CODE(ANY "r1 = r0; r1 &= 15; r1 s/= -4; r1 = -r1;" AT_OFFSET(32));
}
UNSAFE TEST quotient_by_negative_beyond(void)
{
    CODE(ANY "r1 = r0; r1 &= 31; r1 s/= -4; r1 = -r1;" AT_OFFSET(32));
}
UNSAFE TEST quotient_by_either_sign(void)
{
    CODE(ANY "r7 = r0; r7 &= 7; r7 -= 4;" ANY "r1 = r0; r1 &= 3; r1 s/= r7;" AT_OFFSET(32));
}
SAFE(0) TEST remainder_by_negative(void)
{
    CODE(ANY "r1 = r0; r1 &= 255; r1 s%%= -5;" AT_OFFSET(32));
}
UNSAFE TEST remainder_by_negative_beyond(void)
{
    CODE(ANY "r1 = r0; r1 &= 255; r1 s%%= -6;" AT_OFFSET(32));
}
UNSAFE TEST remainder_of_negative(void)
{
    CODE(ANY "r1 = r0; r1 &= 255; r1 -= 128; r1 s%%= -5;" AT_OFFSET(32));
}
SAFE(0) TEST quotient_by_zero(void)
{
    CODE(ANY "r1 = r0; r2 = 0; r1 /= r2;" AT_OFFSET(64));
}
SAFE(7) TEST remainder_by_zero(void)
{
    CODE("r0 = 7; r2 = 0; r0 %%= r2; if r0 == 7 goto +3;" TRAP "exit;");
}
/* Where the divisor may be zero, the dividend may be left as it is. */
UNSAFE TEST remainder_by_perhaps_zero(void)
{
    CODE(ANY "r7 = r0; r7 &= 3;" ANY "r1 = r0; r1 &= 255; r1 s%%= r7;" AT_OFFSET(32));
}
/* The minimum by -1 is the minimum. */
SAFE(0) TEST least_by_minus_one(void)
{
    CODE("r1 = 1; r1 <<= 63; r2 = r1; r1 s/= -1; r0 = 0; if r1 == r2 goto +3;" TRAP "exit;");
}
UNSAFE TEST any_by_minus_one(void)
{
    CODE(ANY "r1 = r0; r1 <<= 32; r2 = 1; r2 <<= 63; r1 |= r2; r1 s/= -1; r0 = 0; if r1 s> 0 goto +3;" TRAP "exit;");
}

/* A number and its copy on the stack are known together, also a narrower copy that loses nothing. */
SAFE(0) TEST stored_before_it_is_compared(void)
{
    CODE(ANY "*(u64 *)(r10 - 16) = r0; if r0 <= 4 goto +2; r0 = 0; exit; r1 = *(u64 *)(r10 - 16);" AT_OFFSET(32));
}
SAFE(0) TEST stored_in_fewer_bytes(void)
{
    CODE(ANY "r0 &= 255; *(u8 *)(r10 - 16) = r0; if r0 <= 7 goto +2; r0 = 0; exit; r1 = *(u8 *)(r10 - 16);"
         AT_OFFSET(8));
}
SAFE(0) TEST lower_half_of_what_was_stored(void)
{
    CODE(ANY "*(u64 *)(r10 - 16) = r0; if r0 <= 4 goto +2; r0 = 0; exit; r1 = *(u32 *)(r10 - 16);" AT_OFFSET(32));
}
UNSAFE TEST stored_in_too_few_bytes(void)
{
    CODE(ANY "*(u8 *)(r10 - 16) = r0; r1 = *(u8 *)(r10 - 16); if r1 <= 7 goto +2; r0 = 0; exit; r1 = r0;"
         AT_OFFSET(8));
}
UNSAFE TEST lower_half_of_more(void)
{
    CODE(ANY "r0 <<= 16; *(u64 *)(r10 - 16) = r0; r1 = *(u32 *)(r10 - 16); if r1 <= 4 goto +2; r0 = 0; exit; r1 = r0;"
         AT_OFFSET(32));
}
UNSAFE TEST overwritten_in_part(void)
{
    CODE(ANY "*(u64 *)(r10 - 16) = r0; r7 = r0;" ANY "*(u8 *)(r10 - 16) = r0; if r7 <= 4 goto +2; r0 = 0; exit;"
         "r1 = *(u64 *)(r10 - 16);" AT_OFFSET(32));
}
UNSAFE TEST changed_after_it_was_stored(void)
{
    CODE(ANY "*(u64 *)(r10 - 16) = r0; r0 &= 3; if r0 <= 4 goto +2; r0 = 0; exit; r1 = *(u64 *)(r10 - 16);"
         AT_OFFSET(32));
}

/* What an atomic instruction finds and leaves on the stack. */
#define FOUR "r1 = 4; *(u64 *)(r10 - 16) = r1;"
SAFE(0) TEST fetched_from_the_stack(void)
{
    CODE(FOUR "r2 = 1; r2 = atomic_fetch_add((u64 *)(r10 - 16), r2); r1 = r2;" AT_OFFSET(32));
}
SAFE(0) TEST left_on_the_stack(void)
{
    CODE(FOUR "r2 = 2; lock *(u64 *)(r10 - 16) += r2; r1 = *(u64 *)(r10 - 16);" AT_OFFSET(16));
}
UNSAFE TEST left_on_the_stack_beyond(void)
{
    CODE(FOUR "r2 = 2; lock *(u64 *)(r10 - 16) += r2; r1 = *(u64 *)(r10 - 16);" AT_OFFSET(32));
}
SAFE(0) TEST exchanged_or_not(void)
{
    CODE(FOUR ANY "r2 = 6; r0 = cmpxchg_64(r10 - 16, r0, r2); r1 = *(u64 *)(r10 - 16);" AT_OFFSET(16));
}
UNSAFE TEST exchanged_or_not_beyond(void)
{
    CODE(FOUR ANY "r2 = 6; r0 = cmpxchg_64(r10 - 16, r0, r2); r1 = *(u64 *)(r10 - 16);" AT_OFFSET(32));
}
UNSAFE TEST added_in_one_half(void)
{
    CODE(FOUR ANY "r2 = 1; lock *(u32 *)(r10 - 12) += r2; r1 = *(u64 *)(r10 - 16);" AT_OFFSET(32));
}
UNSAFE TEST added_to_somewhere(void)
{
    CODE(FOUR "*(u64 *)(r10 - 24) = r1;" ANY "r0 &= 8; r3 = r10; r3 -= r0; r2 = 2; lock *(u64 *)(r3 - 16) += r2;"
         "r1 = *(u64 *)(r10 - 16);" AT_OFFSET(32));
}
