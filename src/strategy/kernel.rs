//! The kernels, as build.rs finds them in `cuda/scan`: each function of the form
//! `DEVICE void NAME(Config config, const lookback_launch& launch)` is one.

macro_rules! kernels {
    ($($(#[$meta:meta])* $kernel:ident = $name:literal in $file:literal,)+) => {
        /// A kernel of `cuda/scan`, in the order of the names. Its number is its place in the CPU device's tables.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kernel { $($(#[$meta])* $kernel,)+ }

        impl Kernel {
            /// Every kernel.
            pub const ALL: &'static [Self] = &[$(Self::$kernel),+];

            /// The C++ function.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kernel => $name),+ }
            }

            /// Its file, below `cuda/`.
            pub const fn file(self) -> &'static str {
                match self { $(Self::$kernel => $file),+ }
            }
        }
    };
}
include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
