//! Templates: which elements a record has, in which order (RFC 7011, section 3.4).

/// The number that our own elements have: that of examples (RFC 5612), since none is assigned to this project.
pub const ENTERPRISE: u32 = 32_473;
/// The length of an element whose length stands before its value.
const VARIABLE: u16 = 0xffff;
/// Marks elements that have an enterprise's number.
const OWN: u16 = 0x8000;
/// The longest text of a record, bytes.
const LONGEST: usize = 200;

/// An element of information: its number in the registry of IANA, or one of ours, and its length in bytes.
type Element = (u16, u16);

/// A template.
#[derive(Debug)]
pub struct Template {
    /// its number, from 256
    pub id: u16,
    /// how many elements are the scope of an option; 0 of flows
    pub scope: u16,
    /// the elements
    pub elements: &'static [Element],
}

/// Our own elements, with what they mean.
const NAMES: [(u16, &str, &str); 3] = [
    (
        1,
        "millraceElement",
        "the element of the chain that decided",
    ),
    (
        2,
        "millraceDropReason",
        "why it dropped the packets, a word of its author's",
    ),
    (
        3,
        "millraceDropLine",
        "the line of its source that decided to, FILE:LINE",
    ),
];

/// A template of flows: its number, why and where packets were dropped if they were, and what tells flows apart.
macro_rules! flow {
    ($id:literal, [$($dropped:tt)*], ip, $($ends:tt)*) => {
        flow!(
            $id, [$($dropped)*],
            $($ends)*
            (60, 1), // ipVersion
            (4, 1),  // protocolIdentifier
            (5, 1),  // ipClassOfService
            (7, 2),  // sourceTransportPort
            (11, 2), // destinationTransportPort
            (6, 2),  // tcpControlBits
        )
    };
    ($id:literal, [$($dropped:tt)*], $($own:tt)*) => {
        Template {
            id: $id,
            scope: 0,
            elements: &[
                (152, 8), // flowStartMilliseconds
                (153, 8), // flowEndMilliseconds
                (2, 8),   // packetDeltaCount
                (1, 8),   // octetDeltaCount
                (352, 8), // layer2OctetDeltaCount
                (302, 8), // selectorId
                (10, 4),  // ingressInterface
                (14, 4),  // egressInterface
                (89, 1),  // forwardingStatus
                (136, 1), // flowEndReason
                (OWN | 1, VARIABLE),
                $($dropped)*
                $($own)*
            ],
        }
    };
}

/// The templates of flows of one sort: of those that were not dropped, and of those that were, with why and where. No text is empty, since
/// collectors take that for an error.
macro_rules! flows {
    ($(#[$what:meta])* $name:ident $id:literal, $(#[$also:meta])* $dropped:ident $other:literal: $($own:tt)*) => {
        $(#[$what])*
        pub const $name: Template = flow!($id, [], $($own)*);
        $(#[$also])*
        pub const $dropped: Template = flow!($other, [(OWN | 2, VARIABLE), (OWN | 3, VARIABLE),], $($own)*);
    };
}

flows!(
    /// Flows of IPv4.
    V4 256,
    /// Those that were dropped.
    V4_DROPPED 260:
    ip,
    (8, 4),  // sourceIPv4Address
    (12, 4), // destinationIPv4Address
);

flows!(
    /// Flows of IPv6.
    V6 257,
    /// Those that were dropped.
    V6_DROPPED 261:
    ip,
    (27, 16), // sourceIPv6Address
    (28, 16), // destinationIPv6Address
);

flows!(
    /// Flows without IP.
    LINK 258,
    /// Those that were dropped.
    LINK_DROPPED 262:
    (56, 6),  // sourceMacAddress
    (80, 6),  // destinationMacAddress
    (256, 2), // ethernetType
);

/// How packets were chosen (RFC 5477).
pub const SAMPLING: Template = Template {
    id: 512,
    scope: 1,
    elements: &[
        (302, 8), // selectorId
        (304, 2), // selectorAlgorithm
        (305, 4), // samplingPacketInterval
        (306, 4), // samplingPacketSpace
    ],
};

/// Names of ports.
pub const PORTS: Template = Template {
    id: 513,
    scope: 1,
    elements: &[
        (10, 4),        // ingressInterface
        (82, VARIABLE), // interfaceName
    ],
};

/// What our own elements are (RFC 5610).
pub const TYPES: Template = Template {
    id: 514,
    scope: 2,
    elements: &[
        (303, 2),        // informationElementId
        (346, 4),        // privateEnterpriseNumber
        (339, 1),        // informationElementDataType
        (344, 1),        // informationElementSemantics
        (341, VARIABLE), // informationElementName
        (340, VARIABLE), // informationElementDescription
    ],
};

/// Those of flows.
pub const FLOWS: &[&Template] = &[&V4, &V6, &LINK, &V4_DROPPED, &V6_DROPPED, &LINK_DROPPED];
/// Those of options.
pub const OPTIONS: &[&Template] = &[&SAMPLING, &PORTS, &TYPES];

impl Template {
    /// Its record in a set of templates.
    #[must_use]
    pub fn definition(&self) -> Vec<u8> {
        let mut out = self.id.to_be_bytes().to_vec();
        out.extend((self.elements.len() as u16).to_be_bytes());
        if self.scope > 0 {
            out.extend(self.scope.to_be_bytes());
        }
        for (id, length) in self.elements {
            out.extend(id.to_be_bytes());
            out.extend(length.to_be_bytes());
            if id & OWN != 0 {
                out.extend(ENTERPRISE.to_be_bytes());
            }
        }
        out
    }
}

/// Appends a text with its length, in UTF-8; one that is too long is cut (RFC 7011, section 7), and an empty one is a dash.
pub fn text(out: &mut Vec<u8>, text: &str) {
    let text = if text.is_empty() { "-" } else { text };
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let bytes = text.as_bytes().get(..end).unwrap_or_default();
    out.push(bytes.len() as u8);
    out.extend(bytes);
}

/// Records of [`TYPES`].
pub fn own() -> impl Iterator<Item = Vec<u8>> {
    NAMES.iter().map(|(id, name, meaning)| {
        let mut out = (*id).to_be_bytes().to_vec();
        out.extend(ENTERPRISE.to_be_bytes());
        // string, default.
        out.extend([13, 0]);
        text(&mut out, name);
        text(&mut out, meaning);
        out
    })
}
