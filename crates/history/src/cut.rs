//! Minimum vertex cut of a graph with weighted vertices: Ford and Fulkerson's maximum flow over vertices split in two
//! ("Flows in Networks", 1962, section I.11), by breadth-first paths (Edmonds and Karp, 1972).

use std::collections::VecDeque;

/// The weight of a vertex that must not be cut.
pub const NEVER: u32 = 1 << 28;

/// A graph whose edges lead from what is known to what is needed.
#[derive(Default)]
pub struct Network {
    /// weight of each vertex
    pub weights: Vec<u32>,
    /// edges
    pub edges: Vec<(usize, usize)>,
    /// vertices that are known from the packet alone
    pub sources: Vec<usize>,
    /// vertices that are needed
    pub sinks: Vec<usize>,
}

struct Edge {
    to: usize,
    room: u32,
}

impl Network {
    /// The vertices of a cut of least weight, of equal ones that nearest to the sinks; none if every cut has a vertex that
    /// must not be.
    #[must_use]
    pub fn cut(&self) -> Option<Vec<usize>> {
        let n = self.weights.len();
        let (source, sink) = (2 * n, 2 * n + 1);
        let mut edges: Vec<Edge> = Vec::new();
        let mut out: Vec<Vec<usize>> = vec![Vec::new(); 2 * n + 2];
        let mut add = |from: usize, to: usize, room: u32| {
            out[from].push(edges.len());
            edges.push(Edge { to, room });
            out[to].push(edges.len());
            edges.push(Edge { to: from, room: 0 });
        };
        for (v, &weight) in self.weights.iter().enumerate() {
            add(2 * v, 2 * v + 1, weight);
        }
        for &(a, b) in &self.edges {
            add(2 * a + 1, 2 * b, NEVER);
        }
        for &v in &self.sources {
            add(source, 2 * v, NEVER);
        }
        for &v in &self.sinks {
            add(2 * v + 1, sink, NEVER);
        }
        let mut flow = 0u32;
        loop {
            let mut by: Vec<Option<usize>> = vec![None; 2 * n + 2];
            let mut queue = VecDeque::from([source]);
            while let Some(at) = queue.pop_front() {
                for &e in &out[at] {
                    let to = edges[e].to;
                    if edges[e].room > 0 && by[to].is_none() && to != source {
                        by[to] = Some(e);
                        queue.push_back(to);
                    }
                }
            }
            let Some(last) = by[sink] else { break };
            let (mut room, mut at) = (u32::MAX, Some(last));
            while let Some(e) = at {
                room = room.min(edges[e].room);
                at = by[edges[e ^ 1].to];
            }
            let mut at = Some(last);
            while let Some(e) = at {
                edges[e].room -= room;
                edges[e ^ 1].room += room;
                at = by[edges[e ^ 1].to];
            }
            flow = flow.saturating_add(room);
            if flow >= NEVER {
                return None;
            }
        }
        // What can still be sent on to the sink lies behind the cut.
        let mut behind = vec![false; 2 * n + 2];
        behind[sink] = true;
        let mut queue = VecDeque::from([sink]);
        while let Some(at) = queue.pop_front() {
            for &e in &out[at] {
                let from = edges[e].to;
                if edges[e ^ 1].room > 0 && !behind[from] {
                    behind[from] = true;
                    queue.push_back(from);
                }
            }
        }
        let cut = (0..n).filter(|v| !behind[2 * v] && behind[2 * v + 1]);
        Some(cut.filter(|v| self.weights[*v] > 0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{NEVER, Network};

    #[test]
    fn two_values_of_one_are_cut_before_they_part() {
        let network = Network {
            weights: vec![32, 16, 20],
            edges: vec![(0, 1), (0, 2)],
            sources: vec![0],
            sinks: vec![1, 2],
        };
        assert_eq!(network.cut(), Some(vec![0]));
    }

    #[test]
    fn equal_cuts_are_made_near_what_is_needed() {
        let network = Network {
            weights: vec![16, NEVER, 16],
            edges: vec![(0, 1), (1, 2)],
            sources: vec![0],
            sinks: vec![2],
        };
        assert_eq!(network.cut(), Some(vec![2]));
        let never = Network {
            weights: vec![NEVER, NEVER, NEVER],
            ..network
        };
        assert_eq!(never.cut(), None);
    }
}
