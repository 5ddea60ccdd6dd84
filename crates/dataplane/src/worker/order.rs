//! Order in which the elements of a chain run over a burst.
//!
//! The result is that of one packet at a time, each of which goes through the whole chain before the next one enters.
//! An element that keeps state can tell: it must see packets in the order of the burst, and one that comes back to it
//! before those behind it. So it runs over a packet once no earlier packet of the burst may still come to it. Where a
//! packet may still come follows from where it waits, from the topology, and from the ports that each element may send
//! it to ([`Behaviour`]). An element without state runs over all packets that wait at it.
//!
//! In a row whose elements send nothing back, a burst of one direction goes through in one call an element. Where
//! directions alternate, an element with a stateful neighbour has a call for each two changes of direction: a later packet
//! of one direction has to wait until the earlier one of the other has come through, so that no order has fewer calls.
//!
//! Cost: as long as a burst stays together, a few operations an element; else a few a packet and element, and where packets wait at several elements, one pass over those of them that
//! are looked at for a call.

use millrace_topology::{End, Topology};

/// Facts about an element that are known before it runs. Nothing is known of one by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// it keeps nothing from one packet to the next, so that their order does not matter to it
    pub stateless: bool,
    /// by ingress port, the ports that it may send a packet to, a bit each, port 0 the lowest; none or missing: any
    pub egress: Vec<Option<u64>>,
}

impl Behaviour {
    /// Of a tap of two ports: a packet goes on, or ends there.
    #[must_use]
    pub fn tap() -> Self {
        Self {
            stateless: false,
            egress: vec![Some(0b10), Some(0b01)],
        }
    }

    /// Whether packets of one port may leave at another.
    #[must_use]
    pub fn leads(&self, from: usize, to: usize) -> bool {
        match self.egress.get(from) {
            Some(Some(ports)) => to >= 64 || ports >> to & 1 == 1,
            _ => true,
        }
    }
}

/// Where packets wait: an element, and the port at which they came to it. Elements are bits of a number
/// (`MOST_ELEMENTS`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Spot {
    element: usize,
    /// elements with state that the packet may come to after this one
    after: u64,
    /// the same, and this one
    reach: u64,
}

/// A packet that is through.
const THROUGH: u32 = u32::MAX;

/// Order of a chain, and how far the packets of a burst are.
#[derive(Debug, Default)]
pub struct Order {
    /// by element, the number of the spot of its port 0
    first: Vec<u32>,
    spots: Vec<Spot>,
    /// by element, its bit where it keeps state, else 0
    own: Vec<u64>,
    /// by element, whether it keeps state and a packet may come back to it
    turns: Vec<bool>,
    /// packets of the burst
    packets: usize,
    /// where all of them are, and their legs, as long as they stay together: `at` and `legs` are then not kept, so that a hand-over
    /// costs nothing by packet
    whole: Option<(u32, u8)>,
    /// by packet, the spot at which it waits
    at: Vec<u32>,
    /// by packet, how often it has turned round: on even legs the numbers of its elements increase, on odd ones they
    /// decrease
    legs: Vec<u8>,
    /// all packets before this one are through
    front: usize,
    /// packets that are not through
    waiting: usize,
    /// those of them that wait at elements without state
    loose: usize,
}

impl Order {
    /// Of elements that are connected so.
    #[must_use]
    pub fn new<'a>(topology: &Topology, behaviours: impl Iterator<Item = &'a Behaviour>) -> Self {
        let behaviours: Vec<_> = behaviours.collect();
        let mut order = Self::default();
        let bit = |element: usize| 1_u64.checked_shl(element as u32).unwrap_or(0);
        for (element, behaviour) in behaviours.iter().enumerate() {
            order.first.push(order.spots.len() as u32);
            order
                .own
                .push(if behaviour.stateless { 0 } else { bit(element) });
            let spot = Spot {
                element,
                ..Spot::default()
            };
            let ports = topology.ports(element).len();
            order.spots.resize(order.spots.len() + ports, spot);
        }
        // All elements behind each spot; those with state are selected at the end.
        loop {
            let mut grown = false;
            for (element, behaviour) in behaviours.iter().enumerate() {
                let leads = topology.ports(element);
                for from in 0..leads.len() {
                    let ends = leads.iter().enumerate();
                    let ends = ends.filter(|(to, _)| behaviour.leads(from, *to));
                    let after = ends.fold(0, |after, (_, end)| match *end {
                        End::Element { element, port } => after | order.reach(element, port),
                        End::Out(_) => after,
                    });
                    let index = order.spot(element, from as u32) as usize;
                    if let Some(spot) = order.spots.get_mut(index) {
                        grown |= spot.after != after || spot.reach == 0;
                        (spot.after, spot.reach) = (after, after | bit(element));
                    }
                }
            }
            if !grown {
                break;
            }
        }
        let with_state = order.own.iter().fold(0, |all, own| all | own);
        order.turns = vec![false; order.own.len()];
        for spot in &mut order.spots {
            spot.after &= with_state;
            spot.reach &= with_state;
            let own = order.own.get(spot.element).copied().unwrap_or(0);
            if let Some(turns) = order.turns.get_mut(spot.element) {
                *turns |= spot.after & own != 0;
            }
        }
        order
    }

    fn spot(&self, element: usize, port: u32) -> u32 {
        let first = self.first.get(element).copied();
        first.map_or(THROUGH, |first| first + port)
    }

    fn reach(&self, element: usize, port: u32) -> u64 {
        let spot = self.spots.get(self.spot(element, port) as usize);
        spot.map_or(0, |spot| spot.reach)
    }

    /// Before a burst.
    pub fn begin(&mut self, packets: usize) {
        self.packets = packets;
        self.whole = Some((THROUGH, 0));
        (self.front, self.waiting, self.loose) = (0, packets, 0);
    }

    /// From here on packets are told apart.
    #[inline]
    fn part(&mut self) {
        if let Some((spot, legs)) = self.whole.take() {
            self.at.clear();
            self.at.resize(self.packets, spot);
            self.legs.clear();
            self.legs.resize(self.packets, legs);
        }
    }

    /// Packets that are not through.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether an element keeps state to which the same packet may come twice.
    #[inline]
    pub fn turns(&self, element: usize) -> bool {
        self.turns.get(element).copied().unwrap_or(true)
    }

    /// An element runs over as many packets that wait at it.
    #[inline]
    pub fn runs(&mut self, element: usize, packets: usize) {
        if self.own.get(element) == Some(&0) {
            self.loose = self.loose.saturating_sub(packets);
        }
    }

    /// A packet comes to an element at this port, from another one or into the chain. How many legs it has behind it.
    #[inline]
    pub fn comes(&mut self, packet: usize, from: Option<usize>, element: usize, port: u32) -> u8 {
        self.part();
        let spot = self.spot(element, port);
        if let Some(at) = self.at.get_mut(packet) {
            *at = spot;
        }
        if self.own.get(element) == Some(&0) {
            self.loose += 1;
        }
        let Some(legs) = self.legs.get_mut(packet) else {
            return 0;
        };
        if let Some(from) = from {
            let increases = element > from;
            *legs = legs.saturating_add(u8::from(increases != legs.is_multiple_of(2)));
        }
        *legs
    }

    /// All packets of the burst come to an element at this port, if each of them has fewer legs than `most` behind it then;
    /// else none does, and it is false.
    pub fn all_come(
        &mut self,
        from: Option<usize>,
        element: usize,
        port: u32,
        most: usize,
    ) -> bool {
        let then = |legs: u8| match from {
            Some(from) => {
                let increases = element > from;
                legs.saturating_add(u8::from(increases != legs.is_multiple_of(2)))
            }
            None => legs,
        };
        let spot = self.spot(element, port);
        let legs = match self.whole {
            Some((_, legs)) => Some(legs),
            None => self.legs.first().copied(),
        };
        let same = |first: u8| self.whole.is_some() || self.legs.iter().all(|l| *l == first);
        match legs.filter(|first| same(*first)) {
            Some(legs) if from.is_some() && usize::from(then(legs)) >= most => return false,
            Some(legs) => self.whole = Some((spot, then(legs))),
            None => {
                let mut legs = self.legs.iter();
                if from.is_some() && legs.any(|legs| usize::from(then(*legs)) >= most) {
                    return false;
                }
                self.legs.iter_mut().for_each(|legs| *legs = then(*legs));
                self.at.fill(spot);
            }
        }
        if self.own.get(element) == Some(&0) {
            self.loose += self.packets;
        }
        true
    }

    /// All packets of the burst are through.
    pub fn all_leave(&mut self) {
        self.whole = Some((THROUGH, 0));
        self.waiting = 0;
    }

    /// A packet that waited nowhere any more is through.
    #[inline]
    pub fn leaves(&mut self, packet: usize) {
        self.part();
        if let Some(at) = self.at.get_mut(packet) {
            *at = THROUGH;
        }
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// Chooses the element that runs next, and the packets that it runs over, in their order. None when all are through.
    pub fn choose(&mut self, packets: &mut Vec<usize>) -> Option<usize> {
        packets.clear();
        self.part();
        while self.at.get(self.front) == Some(&THROUGH) {
            self.front += 1;
        }
        let spots = &self.spots;
        let waiting = self.at.iter().enumerate().skip(self.front);
        let waiting = waiting.filter_map(|(packet, at)| Some((packet, spots.get(*at as usize)?)));
        let own = |element: usize| self.own.get(element).copied().unwrap_or(0);
        // Those without state first, so that as many packets as possible come together at the others. Among these the first
        // packet waits for none.
        let mut first = waiting.clone().map(|(_, spot)| spot.element);
        let element = match self.loose {
            0 => first.next()?,
            _ => first.find(|element| own(*element) == 0)?,
        };
        let own = own(element);
        let mut earlier = 0;
        for (packet, spot) in waiting {
            if earlier & own != 0 {
                break;
            }
            earlier |= if spot.element == element {
                packets.push(packet);
                spot.after
            } else {
                spot.reach
            };
        }
        Some(element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Order {
        /// Where each packet is and how often it has turned round, and how many wait at elements without state.
        fn each(&self) -> (Vec<(u32, u8)>, usize) {
            let apart = self.at.iter().copied().zip(self.legs.iter().copied());
            let each = match self.whole {
                Some(all) => vec![all; self.packets],
                None => apart.collect(),
            };
            (each, self.loose)
        }
    }

    fn passes(stateless: bool) -> Behaviour {
        Behaviour {
            stateless,
            ..Behaviour::tap()
        }
    }

    /// Calls that a row makes over packets that enter at these ports and go through.
    fn calls(row: &[Behaviour], ports: &[u32]) -> Vec<(usize, Vec<usize>)> {
        let topology = Topology::line(row.len());
        let mut order = Order::new(&topology, row.iter());
        order.begin(ports.len());
        let mut came = ports.to_vec();
        for (packet, port) in ports.iter().enumerate() {
            let element = if *port == 0 { 0 } else { row.len() - 1 };
            order.comes(packet, None, element, *port);
        }
        let (mut calls, mut chosen) = (Vec::new(), Vec::new());
        while order.waiting() > 0 {
            let element = order.choose(&mut chosen).unwrap();
            order.runs(element, chosen.len());
            for packet in &chosen {
                match topology.ports(element)[1 - came[*packet] as usize] {
                    End::Element { element: to, port } => {
                        order.comes(*packet, Some(element), to, port);
                        came[*packet] = port;
                    }
                    End::Out(_) => order.leaves(*packet),
                }
            }
            calls.push((element, chosen.clone()));
        }
        calls
    }

    #[test]
    fn a_burst_of_one_direction_takes_a_call_an_element() {
        let row = [passes(false), passes(false), passes(false)];
        let all = vec![0, 1, 2, 3];
        assert_eq!(
            calls(&row, &[0; 4]),
            [(0, all.clone()), (1, all.clone()), (2, all)]
        );
    }

    #[test]
    fn an_element_with_state_sees_both_directions_in_order() {
        let row = [passes(false), passes(true)];
        assert_eq!(
            calls(&row, &[0, 1, 0, 1]),
            [(1, vec![1, 3]), (0, vec![0, 1, 2, 3]), (1, vec![0, 2])]
        );
        let row = [passes(false), passes(false)];
        assert_eq!(
            calls(&row, &[0, 0, 1, 1, 0]),
            [
                (0, vec![0, 1]),
                (1, vec![0, 1, 2, 3]),
                (0, vec![2, 3, 4]),
                (1, vec![4])
            ]
        );
    }

    #[test]
    fn a_packet_that_may_come_back_is_waited_for() {
        let returns = Behaviour {
            stateless: true,
            egress: vec![Some(0b01), Some(0b10)],
        };
        let order = |row: &[Behaviour]| Order::new(&Topology::line(row.len()), row.iter());
        assert!(order(&[passes(false), returns.clone()]).turns(0));
        assert!(!order(&[returns, passes(false)]).turns(0));
        assert!(order(&[passes(false), Behaviour::default()]).turns(0));
        assert!(!order(&[passes(false), passes(true)]).turns(0));
        // One packet at a time, though it goes through here.
        let row = [passes(false), Behaviour::default()];
        let one = |element, packet| (element, vec![packet]);
        assert_eq!(
            calls(&row, &[0, 0]),
            [one(0, 0), one(1, 0), one(0, 1), one(1, 1)]
        );
    }

    #[test]
    fn packets_that_come_at_once_come_as_if_one_after_the_other() {
        let row = [passes(true), passes(false), passes(false)];
        let made = || {
            let mut order = Order::new(&Topology::line(3), row.iter());
            order.begin(3);
            order
        };
        let (mut one, mut all) = (made(), made());
        let ways = [
            (None, 0, 0),
            (Some(0), 1, 0),
            (Some(1), 0, 1),
            (Some(0), 1, 0),
        ];
        for (legs, (from, element, port)) in [1, 1, 2, 3].into_iter().zip(ways) {
            for packet in 0..3 {
                one.comes(packet, from, element, port);
            }
            assert!(all.all_come(from, element, port, legs));
            assert_eq!(one.each(), all.each());
            one.runs(element, 3);
            all.runs(element, 3);
        }
        // It would be the third change of direction, and nothing is done.
        assert!(!all.all_come(Some(1), 0, 1, 3));
        assert_eq!(one.each(), all.each());
        (0..3).for_each(|packet| one.leaves(packet));
        all.all_leave();
        let at = |order: &Order| order.each().0.iter().map(|p| p.0).collect::<Vec<_>>();
        assert_eq!((at(&one), one.waiting), (at(&all), all.waiting));
    }

    #[test]
    fn packets_that_meet_again_are_together_again() {
        let row = [passes(true), passes(false), passes(false)];
        let mut order = Order::new(&Topology::line(3), row.iter());
        order.begin(2);
        for packet in 0..2 {
            order.comes(packet, None, 0, 0);
        }
        assert!(order.whole.is_none());
        assert!(order.all_come(Some(0), 1, 0, 8));
        assert!(order.whole.is_some());
        // One of them alone goes back, and has turned round then.
        order.comes(1, Some(1), 0, 1);
        assert_eq!(
            order.each().0.iter().map(|p| p.1).collect::<Vec<_>>(),
            [0, 1]
        );
        assert!(order.all_come(Some(0), 1, 0, 8));
        assert!(order.whole.is_none());
        assert_eq!(
            order.each().0.iter().map(|p| p.1).collect::<Vec<_>>(),
            [0, 2]
        );
    }

    #[test]
    fn legs_count_changes_of_direction() {
        let row = [passes(false), passes(false), passes(false)];
        let mut order = Order::new(&Topology::line(3), row.iter());
        order.begin(1);
        let legs = [
            order.comes(0, None, 0, 0),
            order.comes(0, Some(0), 1, 0),
            order.comes(0, Some(1), 0, 1),
            order.comes(0, Some(0), 1, 0),
            order.comes(0, Some(1), 2, 0),
            order.comes(0, Some(2), 1, 1),
        ];
        assert_eq!(legs, [0, 0, 1, 2, 2, 3]);
    }
}
