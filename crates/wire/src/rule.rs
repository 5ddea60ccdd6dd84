//! Rules of a walk: the headers that it steps over, and the lengths that it believes.

/// The rule of a walk. [`Rule::PROGRAM`] is that of `include/millrace`; each other one says in its own documentation
/// why its caller needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// VLAN tags that are stepped over; one more is an EtherType like any other
    pub tags: usize,
    /// EtherType 0x9100, which stood for the outer tag before IEEE 802.1ad, is a tag too
    pub old_tags: bool,
    /// extension headers of IPv6 that are stepped over; a packet with more is malformed
    pub extensions: usize,
    /// mobility, HIP and shim6 are extension headers too
    pub rare_extensions: bool,
    /// where a packet ends
    pub lengths: Lengths,
    /// a header of IPv4 whose checksum is wrong is malformed
    pub header_sum: bool,
}

/// Where a packet of IP ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lengths {
    /// where its header says; one that is cut short by the frame's end, or that says less than its header takes, is
    /// malformed
    Held,
    /// where its header says, at the frame's end at last; at the frame's end, too, where the header says zero or less
    /// than it takes itself
    Loose,
    /// at the frame's end, whatever the header says
    Ignored,
}

impl Rule {
    /// The rule of `packet_network` and `packet_find_flow` in `include/millrace`: two tags, eight extension headers,
    /// lengths and header checksum as a router must check them (RFC 1812, 5.2.2).
    pub const PROGRAM: Self = Self {
        tags: 2,
        old_tags: false,
        extensions: 8,
        rare_extensions: false,
        lengths: Lengths::Held,
        header_sum: true,
    };

    /// The rule of a device for frames that a local sender left for it to finish: as [`Self::PROGRAM`], but the
    /// header's checksum is not looked at, as it may be among what is left to do.
    pub const DEVICE: Self = Self {
        header_sum: false,
        ..Self::PROGRAM
    };

    /// The rule of a NIC's hash (crates/steer): its parser looks at no length and no checksum, and knows more tags and
    /// extension headers. Four tags are more than NICs parse; crates/plan counts on the same number.
    pub const NIC: Self = Self {
        tags: 4,
        old_tags: true,
        extensions: 8,
        rare_extensions: true,
        lengths: Lengths::Ignored,
        header_sum: false,
    };

    /// The rule for describing captures: what is in a frame, not what a program would accept; any number of tags and
    /// extension headers, which the frame's length bounds, and packets that the capture cut short or segmentation
    /// offload left without a length.
    pub const CAPTURE: Self = Self {
        tags: usize::MAX,
        old_tags: true,
        extensions: usize::MAX,
        rare_extensions: false,
        lengths: Lengths::Loose,
        header_sum: false,
    };

    /// Frames that a program has written, or will be given, whichever program (crates/verify): as
    /// [`Self::CAPTURE`], but all bytes of a frame count, as a program may read or write them whatever lengths say.
    pub const WRITTEN: Self = Self {
        lengths: Lengths::Ignored,
        ..Self::CAPTURE
    };
}
