//! Fields that a NIC hashes of the packets of one port and one kind.

use crate::fields::{Field, Kind};
use crate::nic::{Choice, Nic};

/// A class by its place in the list that [`solve`](super::solve) is given.
pub type ClassId = usize;

/// The packets of one kind that enter at one port, and the fields that the NIC hashes of them. All
/// classes of a port share the port's key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Class {
    /// the port, by the caller's number
    pub port: usize,
    /// the kind of packet
    pub kind: Kind,
    /// the kind that the NIC takes it for, this one or a coarser; none where it hashes nothing of it, and
    /// then every packet goes where the table's first entry says
    pub hashed: Option<Kind>,
    /// the fields hashed, in the order in which they enter the hash
    pub fields: Vec<Field>,
    /// whether its packets must reach all cores: a class that need not only obeys the constraints
    pub spread: bool,
}

impl Class {
    /// Every way in which this NIC can hash packets of a kind: subsets of its fields, fewest first, then
    /// what it hashes of the coarser kind when it is told to ignore this one; without any rule, the one
    /// way that hashes nothing.
    #[must_use]
    pub fn offered(port: usize, kind: Kind, nic: &Nic) -> Vec<Self> {
        let mut found = Vec::new();
        let mut as_kind = Some(kind);
        while let Some(hashed) = as_kind {
            if let Some(rule) = nic.kinds.get(&hashed) {
                // What a NIC takes for a coarser kind has that kind's fields, and those only.
                let fields: Vec<Field> = rule.fields.clone();
                let subsets = 1_usize << fields.len().min(Field::ALL.len());
                for subset in 1..subsets {
                    let chosen: Vec<Field> = (0..)
                        .zip(&fields)
                        .filter(|(place, _)| subset >> place & 1 == 1)
                        .map(|(_, field)| *field)
                        .collect();
                    if rule.choice == Choice::Any || chosen.len() == fields.len() {
                        found.push(Self {
                            port,
                            kind,
                            hashed: Some(hashed),
                            fields: chosen,
                            spread: true,
                        });
                    }
                }
            }
            as_kind = hashed.coarser();
        }
        found.sort_by_key(|class| (class.bits(), class.hashed != Some(kind)));
        if found.is_empty() {
            found.push(Self::unhashed(port, kind));
        }
        found
    }

    /// With all the fields that this NIC can hash of the kind, as itself where it has a rule for it.
    #[must_use]
    pub fn whole(port: usize, kind: Kind, nic: &Nic) -> Self {
        let offered = Self::offered(port, kind, nic);
        let own = offered.iter().filter(|class| class.hashed == Some(kind));
        own.max_by_key(|class| class.bits())
            .or(offered.last())
            .cloned()
            .unwrap_or_else(|| Self::unhashed(port, kind))
    }

    /// With the fewest bits that this NIC can hash and that include all of `wanted`; none when it cannot
    /// hash them together.
    #[must_use]
    pub fn keeping(port: usize, kind: Kind, wanted: &[Field], nic: &Nic) -> Option<Self> {
        let mut offered = Self::offered(port, kind, nic).into_iter();
        offered.find(|class| wanted.iter().all(|field| class.fields.contains(field)))
    }

    /// As it is when the NIC hashes nothing of the kind.
    #[must_use]
    pub fn unhashed(port: usize, kind: Kind) -> Self {
        Self {
            port,
            kind,
            hashed: None,
            fields: Vec::new(),
            spread: true,
        }
    }

    /// Without the demand that its packets reach all cores.
    #[must_use]
    pub fn anywhere(mut self) -> Self {
        self.spread = false;
        self
    }

    /// Bits of the hash input.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.fields.iter().map(|field| field.bits(self.kind)).sum()
    }

    /// Where a field begins in the hash input, in bits; none when it is not hashed.
    #[must_use]
    pub fn offset(&self, field: Field) -> Option<usize> {
        let before = self.fields.iter().take_while(|f| **f != field);
        let offset = before.map(|f| f.bits(self.kind)).sum();
        self.fields.contains(&field).then_some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic::named;

    #[test]
    fn what_a_device_can_choose_is_offered_fewest_bits_first() {
        let all = named("82599").unwrap();
        let any = named("e810").unwrap();
        // All four, or the addresses as any IPv4 packet.
        let fields = |c: &Class| (c.bits(), c.hashed);
        let offered = Class::offered(0, Kind::Ipv4Tcp, &all);
        let offered: Vec<_> = offered.iter().map(fields).collect();
        assert_eq!(offered, [(64, Some(Kind::Ipv4)), (96, Some(Kind::Ipv4Tcp))]);
        assert_eq!(Class::offered(0, Kind::Ipv4Tcp, &any).len(), 15 + 3);

        let destination = [Field::DestinationAddress];
        let kept = Class::keeping(0, Kind::Ipv4Tcp, &destination, &any).unwrap();
        assert_eq!((kept.bits(), kept.hashed), (32, Some(Kind::Ipv4Tcp)));
        let kept = Class::keeping(0, Kind::Ipv4Tcp, &destination, &all).unwrap();
        assert_eq!((kept.bits(), kept.hashed), (64, Some(Kind::Ipv4)));
        assert_eq!(kept.offset(Field::DestinationAddress), Some(32));
        assert_eq!(Class::whole(0, Kind::Ipv6Udp, &all).bits(), 288);

        // SCTP has no rule there, and its ports cannot be hashed as those of IPv4.
        let port = [Field::SourcePort];
        assert!(Class::keeping(0, Kind::Ipv4Sctp, &port, &all).is_none());
        assert_eq!(Class::whole(0, Kind::Ipv4Sctp, &all).bits(), 64);
        let other = Class::whole(0, Kind::NotIp, &any);
        assert_eq!((other.hashed, other.bits()), (None, 0));
    }
}
