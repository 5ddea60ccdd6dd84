//! docs/support.md is what the registries say: every map type of the kernel, every helper that it offers
//! to XDP programs, supported or refused, and why. MILLRACE_BLESS=1 writes it.

use std::fmt::Write as _;

use millrace_object::helper::kernel_functions::{FIRST, REFUSED};
use millrace_object::helper::{self, HELPERS};
use millrace_object::state::{self, KINDS};

/// The kernel's map types, `BPF_MAP_TYPE_UNSPEC` left out; the last one is ARENA.
const MAP_TYPES: std::ops::RangeInclusive<u32> = 1..=33;

/// From here on numbers are our own.
const OUR_OWN: u32 = 0x10000;

const HEAD: &str = "# Map types and helpers

What XDP programs may declare and call. `cargo test -p millrace-object --test it support::` compares these
tables with the code; with `MILLRACE_BLESS=1` it writes them. The handlers' own kinds and helpers are in
[dialect.md](dialect.md).

## Map types

";

const MIDDLE: &str = "
Maps of which no program makes use may be of any type. A map with `max_entries` 0 is one whose capacity
its author left to the loader: give it, `--capacity NAME=ENTRIES`, or `--capacity '*=ENTRIES'` for all
such maps. A hash map or a trie, LRU and per-CPU ones among them, that is declared for more entries than are possible (67,108,864,
or 64 GiB in all) has the most that are, unless `--capacity NAME=ENTRIES` says fewer: `check` prints how many. An array so large is
refused, as its size is part of what the program does.

Variables of the kernel's configuration (`extern int CONFIG_HZ __kconfig`) are settings, `--set CONFIG_HZ=1000`: there is no
kernel beneath a function. Unless set, `LINUX_KERNEL_VERSION` is 6.1 (0x060100), `CONFIG_HZ` 250 as in `bpf_jiffies64`;
`LINUX_HAS_BPF_COOKIE`, `LINUX_HAS_SYSCALL_WRAPPER` and `CONFIG_` 64BIT, BPF, BPF_JIT, BPF_SYSCALL, DEBUG_INFO_BTF, HZ_250, INET, IPV6,
NET, SMP and XDP_SOCKETS are 1 (`y` in a variable of type `char`); all others are 0 or empty, also those that are not
`__weak`. On a port `xdp:` the kernel's own values count.

`millrace run --map NAME=FILE` fills a map at start, in place of the program that would do so from user
space; maps.md says how entries are written. In program arrays a value is a program's name.

### Where redirects go

Interface index n is port n - 1, for `bpf_redirect` and in device maps. A packet that a CPU map sends
to another CPU goes to the host's network stack (passed); one that an XSK map sends to a socket is
consumed. A broadcast through a device map floods if it means every port but the ingress, forwards if it
means one port, drops if it means none; any other aborts. Device maps, CPU maps and XSK maps are
empty until the host sets entries, as in the kernel. `XDP_REDIRECT` where the packet has named no target goes nowhere: the packet is aborted. Programs that a device map or CPU map would run on what it redirects (`xdp/devmap`,
`xdp/cpumap`) are not run, and an entry that names one cannot be set.

### Routing

`bpf_fib_lookup` and `bpf_check_mtu` ask a routing table that `millrace run --routes FILE` or `--routes
system` gives (routes.md); without one there is no forwarding (`BPF_FIB_LKUP_RET_FWD_DISABLED`).

### Maps of maps

A map of maps holds what its declaration says (`.values = { &inner }`, or iproute2's ids), and what the host
sets: other maps of the file, or maps that are made for it. A map may be held where it is like the one
declared: of the same type, sizes and flags; arrays also need the same `max_entries`, unless they have
BPF_F_INNER_MAP. Program arrays and maps of maps cannot be held.

### One call, several maps

Which map a call works on may differ from packet to packet, as where compilers make one call of two in
different branches: keys, values and results are then those of the map at hand, also in
`bpf_for_each_map_elem`, which goes through one of up to 8 maps of the file, and where one of them was found
in a map of maps. One exception: between maps found in two maps of maps, the branch that chooses must lead to
the call without another branch in between (`several-objects`).

Where a Bloom filter errs depends on the run's seed, as the kernel's does on one that it draws.

### Tail calls

A program array holds what its declaration says, `__array(values, int (void *))`, the programs of sections
called `ID/INDEX` if it is declared with that id the way of iproute2 (`struct bpf_elf_map`), and what `--map`
sets; where it is empty, tail calls fall through. `millrace run` begins with the only program that no array
holds, or with the one that `--program` names. A packet makes at most 33 tail calls. A tail call in a
function that the program calls leaves that function alone, with the other program's verdict as its result;
in a function that a helper calls back it is refused.

### Multi-buffer packets

Programs of the sections `xdp.frags` are taken. A packet lies in one buffer here, however long it is (to 65,535
bytes): `data_end` is its end, where the kernel's programs see the first buffer only, and
`bpf_xdp_get_buff_len`, `bpf_xdp_load_bytes` and `bpf_xdp_store_bytes` are about the same bytes.

### Functions that are called back

`bpf_loop` and `bpf_for_each_map_elem` take the address of a function of the program, the same at each
call; a call stands for a loop around that function, and is proved, written and counted as one. The
address of a function serves for nothing else. A map of more than 2^23 places is not gone through.

The kernel lets calls of `bpf_loop` nest, each of up to 2^23 rounds. Here the rounds of loops within loops
multiply, for loops of either sort, and weigh what is done in them: a program that could take more than 2^34 steps for
one packet, of which a call of a helper is 32 and one more for each byte that it touches, is refused (`too-many-rounds`).

### Timers

A value of a HASH, LRU_HASH or ARRAY map may have one `struct bpf_timer`, found by the map's type information
(`__type(value, …)`). The helpers return what the kernel's do. CLOCK_REALTIME, CLOCK_MONOTONIC and CLOCK_BOOTTIME are
one clock, the packets' time: in captures the time stamps, on live ports the system's clock. A timer that was started for
a moment fires before the first packet at or after it, in the order of the moments, and its function sees that
moment as the present; on live ports it also fires when no packet comes. So a capture gives the same result whatever the
burst. A timer's function that starts it again for a moment which has passed, too, is called again at once,
unless the new moment is not after the old one: then it waits until after the packet at hand. After 4096 such calls
between two packets, functions are told the packet's time instead. Timers that run when the program ends do
not fire. As in the kernel, time is a signed number that is never negative: an absolute moment of 2^63 ns or more has
passed, and a sum beyond that is the last moment there is.

As in the kernel, deleting, overwriting or evicting an entry cancels its timer, from outside too, and the sixteen
bytes are the helpers' alone: they read as zeros from outside, and a program that touches them is refused
(`timer-field`). A function may serve timers of several maps if it is safe for each. Maps of maps cannot hold maps
with timers (`map-in-map`), and a timer that is a variable of its own cannot be set up (`helper-argument`).

### Texts

`bpf_snprintf` prints numbers and characters: `%d %i %u %x %X` with `l` or `ll`, `%c`, flags and widths. What reads memory
at an address (`%s`, `%p` and its kin) is refused, rule `format`. What a buffer on the stack holds beyond the text
is zero; elsewhere those bytes stay as they are, as in the kernel. `bpf_snprintf(NULL, 0, …)` tells how much room a text
needs. `bpf_trace_printk` and `bpf_trace_vprintk` write nothing. They return the line's length, as the kernel's do, but
the format's where it has conversions that read memory (addresses may be among the values of such a line, which nobody looks at), and `bpf_trace_printk` for any conversion, as its values are no
part of its contract.

### Pointers related to each other

A program may subtract and compare two pointers into the packet with its metadata, into one function's stack, into the
value that one lookup found, into a global variable, and into one record: that distance and that order are BPF's own.
The rest tells where the host put something, and is refused: the difference of other pointers
(`pointer-arithmetic`), also of two maps' addresses, of two entries of a map, of two functions' stacks; their
comparison (`pointer-comparison`), also for equality (compare the entries' keys); and the bits of an address. The
kernel allows these to root; what they give differs from run to run. The lower halves of two such pointers may be
subtracted, as compilers write `(__u32)(p - start)`.

### Iterators over numbers

From `bpf_iter_num_new` to `bpf_iter_num_destroy` the iterator's eight bytes are its own: a program that reads or writes
them, or passes them to a helper, is refused (`iterator`). What `bpf_iter_num_next` points to may be read. An iterator
ends with the function whose variable it is.

### Pointers kept in maps

A pointer that is stored into a map's value, a global, a record or the packet is refused (`pointer-leak`), whatever it
points to. The kernel allows it to root for map values: what is loaded again is a number there, of no use as an
address, but it is one of the kernel's, and differs from run to run. No value that
could stand in its place would be right for every program: one that only compares the number with zero would be told
that nothing was stored, one that subtracts two of them gets a length that is wrong. Keep an offset from `data` instead.

### Loops bounded by may_goto

The instruction `may_goto` jumps when its function's call has executed it, and others of its kind, 2^23 times. A
loop each of whose rounds passes one ends; how often it went round need not be known. (Kernels since 6.15 look
at a clock as well, and may leave such a loop earlier or later.)

## CO-RE relocations

All kinds of libbpf's are applied. There is no kernel here whose types could differ, so a field is where the
object's own type information has it; a flavour, `struct xdp_md___new`, is looked for by its members' names in
the type of the name before the underscores, if the object has that. What asks whether a type, field or
enumerator exists is answered as for a kernel with nothing but its user API: yes for the context and for packet
headers (`xdp_md`, `ethhdr`, `iphdr`, `ipv6hdr`, `tcphdr`, `udphdr` and their kin; crates/object/src/core/known.rs
has the list), for `enum bpf_func_id` and `enum bpf_map_type` if that helper or map type is supported, no for all
else: sizes of such types are 0. What needs a field that a flavour's type lacks is refused if it can be
executed, rule `absent-field`.

## Helpers

";

const KERNEL_FUNCTIONS: &str = "
## Kernel functions

| function | | |
| --- | --- | --- |
";

/// What a kernel function does here, where it is not what it does in the kernel.
fn meaning(name: &str) -> &'static str {
    match name {
        "xdp_flow_lookup" => "no flow table of netfilter's is set up: always null",
        "xdp_metadata_rx_timestamp" => "the packet's time",
        "xdp_metadata_rx_hash" => "packets come without one: -EOPNOTSUPP",
        "xdp_metadata_rx_vlan_tag" => "tags stay in the frame: -EOPNOTSUPP",
        "iter_num_new" | "iter_num_next" | "iter_num_destroy" => "",
        other => panic!("{other}: say here what it means"),
    }
}

fn table() -> String {
    let mut text = HEAD.to_owned();
    text.push_str("| type | | |\n| --- | --- | --- |\n");
    for number in MAP_TYPES {
        let name = state::bpf_type_name(number);
        match (state::by_bpf_type(number), state::refused::reason(number)) {
            (Some(kind), None) => {
                writeln!(text, "| {name} | supported | {} |", kind.at_capacity).unwrap();
            }
            (None, Some(why)) => writeln!(text, "| {name} | refused | {why} |").unwrap(),
            (Some(_), Some(_)) => panic!("{name} is both supported and refused"),
            (None, None) => panic!("{name} is neither supported nor refused"),
        }
    }
    text.push_str(MIDDLE);
    text.push_str("| number | helper | | |\n| --- | --- | --- | --- |\n");
    let mut rows: Vec<(u32, String)> = Vec::new();
    for h in HELPERS.iter().filter(|h| h.number < OUR_OWN) {
        assert!(helper::refused::by_number(h.number).is_none(), "{}", h.name);
        let kinds = h.kind_names();
        rows.push((h.number, format!("bpf_{} | supported | {kinds}", h.name)));
    }
    for (number, name, why) in helper::refused::REFUSED {
        rows.push((*number, format!("bpf_{name} | refused | {why}")));
    }
    rows.sort();
    for (number, row) in rows {
        writeln!(text, "| {number} | {row} |").unwrap();
    }
    text.push_str("\nNo other helper is offered to XDP programs.\n");
    text.push_str(KERNEL_FUNCTIONS);
    let offered = HELPERS
        .iter()
        .filter(|h| (FIRST..helper::EXPANSION).contains(&h.number));
    let offered = offered.map(|h| format!("bpf_{} | supported | {}", h.name, meaning(h.name)));
    let refused = REFUSED
        .iter()
        .map(|(name, why)| format!("{name} | refused | {why}"));
    for row in offered.chain(refused) {
        writeln!(text, "| {row} |").unwrap();
    }
    text.push_str(
        "\nNo other kernel function is offered; an object that calls one is refused by its name.\n",
    );
    text
}

#[test]
fn the_document_says_what_the_registries_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/support.md");
    let expected = table();
    if std::env::var_os("MILLRACE_BLESS").is_some() {
        std::fs::write(path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    for (number, (found, expected)) in (1..).zip(found.lines().zip(expected.lines())) {
        assert_eq!(found, expected, "line {number}; MILLRACE_BLESS=1 mends it");
    }
    assert_eq!(found, expected, "MILLRACE_BLESS=1 mends it");
}

#[test]
fn refusals_are_in_order_and_of_what_exists() {
    let helpers = helper::refused::REFUSED;
    assert!(helpers.windows(2).all(|w| w[0].0 < w[1].0));
    assert!(state::refused::REFUSED.windows(2).all(|w| w[0].0 < w[1].0));
    let kernels = KINDS.iter().filter_map(|k| k.bpf_type);
    assert!(kernels.clone().all(|number| MAP_TYPES.contains(&number)));
    for (number, name, why) in helpers {
        assert_eq!(helper::refused::by_number(*number), Some((*name, *why)));
    }
}
