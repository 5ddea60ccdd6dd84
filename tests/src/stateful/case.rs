//! Programs that keep state, as values: what the grammar draws, the renderer prints and the shrinker takes apart.

use super::sets::Sets;
use super::traffic::Packet;

/// A program and what it runs on.
#[derive(Clone, Debug)]
pub struct Case {
    /// what both were drawn from
    pub seed: u64,
    /// the program
    pub program: Program,
    /// in ingress order
    pub packets: Vec<Packet>,
}

/// A program: headers are parsed, then its blocks run one after another, then the verdict is given.
#[derive(Clone, Debug)]
pub struct Program {
    /// how it is written
    pub dialect: Dialect,
    /// what it looks at before it reads fields
    pub parse: Parse,
    /// its state
    pub objects: Vec<Object>,
    /// what it does with it
    pub blocks: Vec<Block>,
    /// whether it looks at the clock
    pub clock: bool,
    /// what becomes of packets of which no block says anything else
    pub verdict: Otherwise,
    /// handlers: the sets whose packets run it; none: it runs for each packet
    pub sets: Option<Sets>,
}

/// The two ways to write a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// `SEC("xdp")`
    Xdp,
    /// `ON_PACKET`
    Handlers,
}

/// What becomes of a packet in the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Otherwise {
    /// to the other port
    Peer,
    /// back where it came from; handlers: to the other port
    Back,
    /// to the host
    Pass,
}

/// The headers of which a program reads fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4 behind Ethernet
    V4,
    /// IPv6 behind Ethernet
    V6,
    /// Ethernet alone
    Ethernet,
    /// `packet_flow` of the handlers' headers, which knows both versions
    Flow,
}

/// What a program looks at before it reads fields at fixed offsets.
#[derive(Clone, Debug)]
pub struct Parse {
    /// which headers
    pub family: Family,
    /// the version's four bits
    pub version: bool,
    /// the header's length: not at all (as most programs do), 20 alone, or walked over
    pub length: HeaderLength,
    /// fragments are passed
    pub fragments: bool,
    /// which transports; others are passed
    pub protocol: Protocol,
    /// fields are gathered by a static function into a struct, as strangers write
    pub gathered: bool,
}

/// What a program does with IPv4's header length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderLength {
    /// takes it for 20
    Ignored,
    /// 20 alone
    Fixed,
    /// as it stands there
    Walked,
}

/// Which transports a program reads ports of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// none is asked for, ports are read all the same
    Ignored,
    /// UDP
    Udp,
    /// TCP and UDP
    Both,
    /// none, and no ports are read
    NoPorts,
}

/// A state object.
#[derive(Clone, Debug)]
pub struct Object {
    /// its kind
    pub kind: Kind,
    /// what its keys are
    pub shape: Shape,
    /// what its values are
    pub value: Value,
    /// entries that it has room for
    pub capacity: u32,
    /// handlers: `.expire_after`, ms; 0: never
    pub expires: u32,
}

/// Kinds of state with values that are read and written in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// HASH, MAP
    Hash,
    /// LRU_HASH
    Lru,
    /// ARRAY, VECTOR
    Array,
    /// PERCPU_ARRAY
    PercpuArray,
    /// PERCPU_HASH
    PercpuHash,
    /// LRU_PERCPU_HASH
    PercpuLru,
    /// an array in `.bss`
    Global,
    /// an ARRAY in an ARRAY_OF_MAPS
    Nested,
}

impl Kind {
    /// Whether there is an instance for each CPU.
    #[must_use]
    pub fn percpu(self) -> bool {
        matches!(self, Self::PercpuArray | Self::PercpuHash | Self::PercpuLru)
    }

    /// Whether it is reached by a number below its capacity.
    #[must_use]
    pub fn indexed(self) -> bool {
        matches!(
            self,
            Self::Array | Self::PercpuArray | Self::Global | Self::Nested
        )
    }
}

/// The C type of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// `__u32`
    Word,
    /// two `__u32`
    Pair,
    /// addresses, ports, protocol
    Tuple,
    /// an address and a port
    Endpoint,
    /// six bytes
    Mac,
    /// an IPv6 address
    Six,
    /// `struct flow`
    Flow,
}

/// The C type of values: `a`, `b` of these widths, `t` of 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Value {
    /// bytes of `a`: 1, 2, 4 or 8
    pub a: u8,
    /// bytes of `b`
    pub b: u8,
    /// packed, with a byte in front, so that nothing is aligned
    pub packed: bool,
}

/// One step of a program: a number comes from somewhere, and goes somewhere.
#[derive(Clone, Debug)]
pub struct Block {
    /// for which packets
    pub when: When,
    /// where the number `rN` comes from
    pub source: Source,
    /// where it goes
    pub leak: Leak,
}

/// For which packets a block is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// all
    Always,
    /// those of a port, 0 or 1
    Port(u8),
    /// those of UDP
    Udp,
    /// those to this port
    To(u16),
    /// those whose number of an earlier block is odd
    Odd(usize),
}

/// Where a number comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// a value of an object
    Value {
        /// index of the object
        object: usize,
        /// the key
        key: Key,
        /// what happens where there is no such entry
        miss: Miss,
        /// what happens to the value
        action: Action,
        /// what is added or stored
        amount: Amount,
    },
    /// whether there was no such entry, which is made then
    First {
        /// index of the object
        object: usize,
        /// the key
        key: Key,
    },
    /// whether there was such an entry, which is deleted
    Delete {
        /// index of the object
        object: usize,
        /// the key
        key: Key,
    },
    /// what was popped from a queue behind a number pushed
    Queue,
    /// the top of a stack
    Stack,
    /// whether a Bloom filter knows the key's hash, which is added
    Bloom(Key),
    /// whether a ring of few pages had room
    Ring,
    /// how many records a ring ever had, which gets one more
    RingQuery,
    /// the CPU's number
    Cpu,
    /// a random draw
    Random,
    /// the time, in ms
    Time,
    /// whether there is a number to lease
    Lease(Key),
    /// whether a packet of port 1 belongs to the flow that leased the number it carries
    Leased {
        /// what of the packet is held against what was stored
        held: Held,
        /// what becomes of a packet that does not fit
        mismatch: Mismatch,
    },
    /// a value of an object under a key that an entry of another object holds: a packet that finds no such entry makes
    /// it
    Through {
        /// index of the object that holds the key
        via: usize,
        /// its key
        key: Key,
        /// index of the object that is reached by what it holds
        object: usize,
        /// what it holds
        number: Key,
        /// whether a packet that stores the key touches the entry under it as well
        together: bool,
    },
    /// a loop, drawn for replication alone ([`super::replicas`])
    Loop {
        /// index of the object
        object: usize,
        /// the key that it begins with
        key: Key,
        /// what it goes over
        over: Over,
    },
    /// a sketch's estimate
    Sketch(Key),
    /// the port of a packet, from 0
    Ingress,
    /// the IPv4 or IPv6 header's length field
    Length,
}

/// What a loop goes over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// bytes of the packet, before state: what is made of them is the key
    Bytes,
    /// entries under several keys that the first one makes
    Keys,
    /// as many rounds as an entry says
    Rounds,
    /// bytes of the packet, behind the lookup
    Late,
}

/// What of a packet is held against what is stored under a leased number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// the server's address
    Address,
    /// its address and port
    Both,
    /// its port
    Port,
}

/// What becomes of a packet whose server is not the one that is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mismatch {
    /// what becomes of one whose number is free
    AsMiss,
    /// it is dropped for another reason
    Reason,
    /// it is forwarded
    Forward,
    /// it is counted, beside what becomes of one whose number is free
    Counted,
    /// its end is cut off, beside what becomes of one whose number is free: both go to the host
    Cut,
}

/// A key, as an expression over the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// the same for all packets
    Constant(u32),
    /// source address
    Src,
    /// destination address
    Dst,
    /// destination port
    Dport,
    /// source address, the lower bits cleared
    Prefix(u8),
    /// the source address's last byte
    Low,
    /// the protocol's number
    Proto,
    /// exclusive or of both addresses
    Xor,
    /// the sum of both addresses
    Sum,
    /// a multiplicative hash of the source address
    Hash,
    /// the source at port 0, the destination at port 1
    Side,
    /// the source for UDP, the destination for all others
    ByProto,
    /// the packet's length
    Len,
    /// the TTL
    Ttl,
    /// the time, in seconds
    Time,
    /// the number of an earlier block
    Of(usize),
    /// both addresses
    Pair,
    /// both addresses, the lower first
    Ordered,
    /// both addresses, swapped at port 1
    Peers,
    /// the 5-tuple
    Tuple,
    /// the 5-tuple as the other side sees it
    Reversed,
    /// the 5-tuple, reversed at port 1
    Conversation,
    /// source address and port
    Source,
    /// destination address and port
    Destination,
    /// source MAC address
    MacSrc,
    /// destination MAC address
    MacDst,
    /// source address of IPv6
    SixSrc,
    /// destination address of IPv6
    SixDst,
    /// its upper half
    SixNet,
}

/// What happens where a key has no entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Miss {
    /// one is made, with one counted
    Insert,
    /// one of zeros is made, which then is treated as if it had been there
    Make,
    /// nothing
    Skip,
}

/// What happens to a value; `rN` is what it shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// `a += E`
    Add,
    /// `a += E; b += len`
    AddTwo,
    /// the same in one atomic instruction
    AtomicAdd,
    /// the old value of an atomic addition
    Fetch,
    /// `r = a; a = r + 1`
    Count,
    /// a counter that starts again when a window of time is over
    Window,
    /// a token bucket
    Bucket,
    /// the largest
    Max,
    /// exclusive or
    Xor,
    /// or
    Or,
    /// the last one
    Last,
    /// `a = 3 a + E`
    Mix,
    /// `a++; b += a`
    AddOwn,
    /// `__sync_fetch_and_add(&b, a); a++`
    AtomicOwn,
    /// `a += E`, and an addition of half the width inside of it
    Overlap,
    /// up to a limit
    Saturate,
    /// only read
    Read,
    /// an atomic exchange
    Exchange,
    /// subtracts
    Subtract,
    /// written before it is read
    Scratch,
    /// stored whole, by an update
    Put,
}

/// What is added or stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// one
    One,
    /// the packet's length
    Len,
    /// the destination port
    Dport,
    /// the number of an earlier block
    Of(usize),
}

/// Where a number goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leak {
    /// nowhere
    None,
    /// an odd one drops the packet
    Odd,
    /// one above a limit drops the packet
    Above(u32),
    /// the lowest bit chooses the port
    Port,
    /// the lowest bit is added to the verdict
    Verdict,
    /// a byte of the destination MAC address
    Byte,
    /// which byte of the addresses is written
    Place,
    /// how much is cut off the end
    Tail,
    /// how much is put in front
    Head,
    /// the contents of a record
    Record,
    /// the length of a record
    RecordLength,
    /// whether there is a record
    RecordWhether,
    /// the length of a record of a perf event array
    PerfLength,
    /// which program goes on
    TailCall,
    /// the input of `bpf_csum_diff`
    Csum,
    /// the input of `bpf_snprintf`, whose result is a length
    Text,
    /// the input of `bpf_strtol`
    Number,
    /// the input of `bpf_strncmp`
    Compare,
    /// a global that nobody reads
    Global,
}
