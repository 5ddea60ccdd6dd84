//! The kernel's map types that are not supported, with the reason.

const NO_SOCKETS: &str = "there are no sockets";
const NO_CGROUPS: &str = "a packet belongs to no control group";
const NO_TASK: &str = "a packet belongs to no task";

/// `enum bpf_map_type` (include/uapi/linux/bpf.h) and the reason; by ascending number.
pub const REFUSED: &[(u32, &str)] = &[
    (7, "stacks of calls are the kernel's own"),
    (8, NO_CGROUPS),
    (15, NO_SOCKETS),
    (18, NO_SOCKETS),
    (19, NO_CGROUPS),
    (20, NO_SOCKETS),
    (21, NO_CGROUPS),
    (24, NO_SOCKETS),
    (26, "operations of the kernel cannot be replaced"),
    (28, "a packet belongs to no file"),
    (29, NO_TASK),
    (31, "functions that the kernel calls back are not supported"),
    (32, NO_CGROUPS),
    (
        33,
        "memory shared with user space by address is not supported",
    ),
];

/// The reason why a map type is refused.
#[must_use]
pub fn reason(number: u32) -> Option<&'static str> {
    let found = REFUSED.iter().find(|(n, _)| *n == number);
    found.map(|(_, reason)| *reason)
}
