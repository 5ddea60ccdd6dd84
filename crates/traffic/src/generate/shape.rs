//! Flow sizes of the networks whose traces Xu et al. measured with (*State-Compute Replication*, figure 5).
//!
//! Those traces are not ours to hand out, and two are not public. The points here are approximations that were set by hand after what
//! the sources say and draw: between two of them the logarithm of the size grows evenly with the share of flows.

use millrace_steer::named;
use serde::Serialize;

named! {
    /// A distribution of flow sizes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Shape {
        /// a data center of a university: four of five flows have fewer than 10 KB, a tenth has nearly all bytes (Benson et al.,
        /// Understanding data center traffic characteristics, 2010)
        University = "university",
        /// a wide-area Internet backbone: most flows have a few packets, and the tail is a power law with an exponent near 1.1 (CAIDA)
        Backbone = "backbone",
        /// TCP in a data center of a hyperscaler: from queries of some packets to updates of 30 MB (Alizadeh et al., Data Center TCP,
        /// 2010, figure 4)
        Hyperscale = "hyperscale",
    }
}

impl Shape {
    /// Sizes in packets, ascending, and the share of flows up to each, 0 to 1.
    fn points(self) -> &'static [(f64, f64)] {
        match self {
            Self::University => &[
                (1.0, 0.1),
                (2.0, 0.3),
                (4.0, 0.5),
                (8.0, 0.8),
                (30.0, 0.9),
                (100.0, 0.95),
                (1000.0, 0.99),
                (10_000.0, 0.999),
                (100_000.0, 1.0),
            ],
            Self::Backbone => &[
                (1.0, 0.45),
                (2.0, 0.6),
                (5.0, 0.8),
                (10.0, 0.89),
                (50.0, 0.975),
                (100.0, 0.987),
                (1000.0, 0.9988),
                (10_000.0, 0.9999),
                (100_000.0, 1.0),
            ],
            Self::Hyperscale => &[
                (1.0, 0.02),
                (6.0, 0.15),
                (13.0, 0.2),
                (19.0, 0.3),
                (33.0, 0.4),
                (53.0, 0.53),
                (133.0, 0.6),
                (667.0, 0.7),
                (1333.0, 0.8),
                (3333.0, 0.9),
                (6667.0, 0.97),
                (20_000.0, 1.0),
            ],
        }
    }

    /// The size, in packets, of the flow that this share of flows does not exceed, 0 to 1.
    #[must_use]
    pub fn size(self, share: f64) -> f64 {
        let mut before = (1.0, 0.0);
        for point in self.points() {
            if share <= point.1 {
                let part = (share - before.1) / (point.1 - before.1).max(f64::MIN_POSITIVE);
                let part = part.clamp(0.0, 1.0);
                return before.0 * f64::powf(point.0 / before.0, part);
            }
            before = *point;
        }
        before.0
    }
}

impl std::str::FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|s| s.name() == text);
        found.ok_or_else(|| {
            format!("`{text}` is no shape of traffic: university, backbone or hyperscale")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_go_through_the_points() {
        for shape in Shape::ALL {
            assert_eq!(shape.name().parse(), Ok(shape));
            let mut last = 0.0;
            for (size, share) in shape.points() {
                assert!((shape.size(*share) / size - 1.0).abs() < 1e-9);
                assert!(*size > last && shape.size(share - 0.001) <= *size);
                last = *size;
            }
            assert_eq!(shape.size(2.0), last);
        }
        assert!("office".parse::<Shape>().is_err());
    }
}
