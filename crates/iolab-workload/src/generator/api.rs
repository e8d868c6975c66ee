//! Interface of a pattern, and the closed list of them.

use iolab_model::Seed;

use crate::spec::Pattern;

/// A never-ending order of record numbers; one pass is as long as the file has records.
pub trait Records {
    /// The next record to touch, below the number of records.
    fn next(&mut self) -> u64;
}

/// Declares [`Generator`]: static dispatch over the rows, because it runs once per op.
macro_rules! generators {
    ($( $Row:ident($Type:path), )+) => {
        /// Any of the patterns.
        #[derive(Clone, Debug)]
        #[allow(missing_docs, reason = "each pattern documents itself")]
        pub enum AnyGenerator { $( $Row($Type), )+ }

        impl $crate::generator::Records for AnyGenerator {
            #[inline]
            fn next(&mut self) -> u64 {
                match self { $( Self::$Row(generator) => generator.next(), )+ }
            }
        }

        impl Generator {
            /// The generator of `pattern`; random ones also use `seed`.
            pub fn new(
                pattern: $crate::spec::Pattern,
                records: u64,
                seed: iolab_model::Seed,
            ) -> Self {
                Self($crate::generator::api::build(pattern, records, seed))
            }
        }
    };
}
pub(super) use generators;

use super::{AnyGenerator, permutation, reverse, same, sequential, shuffled, stride, uniform};

/// A pattern in motion.
#[derive(Clone, Debug)]
pub struct Generator(pub(super) AnyGenerator);

impl Records for Generator {
    #[inline]
    fn next(&mut self) -> u64 {
        self.0.next()
    }
}

pub(super) fn build(pattern: Pattern, records: u64, seed: Seed) -> AnyGenerator {
    assert!(records > 0, "a file without records has no order");
    match pattern {
        Pattern::Sequential => AnyGenerator::Sequential(sequential::Sequential::new(records)),
        Pattern::Reverse => AnyGenerator::Reverse(reverse::Reverse::new(records)),
        Pattern::Stride { stride } => AnyGenerator::Stride(stride::Stride::new(records, stride)),
        Pattern::Permutation => AnyGenerator::Permutation(permutation::Permutation::new(records)),
        Pattern::Shuffled => AnyGenerator::Shuffled(shuffled::Shuffled::new(records, seed)),
        Pattern::Uniform => AnyGenerator::Uniform(uniform::Uniform::new(records, seed)),
        Pattern::Same => AnyGenerator::Same(same::Same),
    }
}
