//! Interface of an engine: a row in a list that gives a [`Target`] its name.

use iolab_model::Target;

/// Code that is generic over the target; [`super::Engine::visit`] calls it with the engine's own.
///
/// This is how one dynamic decision per trial replaces one per op, for the engines whose own cost
/// per op matters; the others come as [`iolab_model::Erased`], all as one type.
pub trait EngineVisitor {
    /// Answer of the code.
    type Output;

    /// Runs with the chosen target.
    fn visit<T: Target + Sync>(self, target: &T) -> Self::Output;
}

/// Declares [`super::Engine`] from rows of `Variant = "name" => typed expression of a target`;
/// `erased` in place of `typed` spares the time to compile all pumps for one more type.
macro_rules! engines {
    ($( $(#[$meta:meta])* $Row:ident = $text:literal => $kind:ident $target:expr, )+) => {
        iolab_model::registry! {
            /// An engine, by name.
            pub enum Engine as "engine" {
                $( $(#[$meta])* $Row = $text, )+
            }
        }

        impl Engine {
            /// Runs `visitor` with this engine's target.
            pub fn visit<V: EngineVisitor>(self, visitor: V) -> V::Output {
                match self {
                    $( Self::$Row => visitor.visit(&$crate::engine::api::target!($kind $target)), )+
                }
            }

            /// Tell whether it can be used here; if not, why, and what to do instead.
            ///
            /// It is tried as a trial would use it: by opening a lane, for files in `directories`.
            pub fn probe(
                self,
                directories: &[std::path::PathBuf],
            ) -> Result<(), $crate::engine::Unavailable> {
                self.visit($crate::engine::refusal::Try(directories))
            }
        }
    };
}
pub(super) use engines;

/// The target of a row.
macro_rules! target {
    (typed $target:expr) => {
        $target
    };
    (erased $target:expr) => {{
        // Not inlined, so that what it refers to is compiled here and not with each visitor.
        #[inline(never)]
        fn erased() -> iolab_model::Erased<'static> {
            iolab_model::Erased::new(const { &$target })
        }
        erased()
    }};
}
pub(super) use target;
