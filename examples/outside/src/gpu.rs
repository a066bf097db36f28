//! The first GPU, and what there is for one alone.

use crate::{Outcome, expect};
use cudarc::driver::{CudaContext, CudaStream};
use lookback::cuda::Scanner;
use lookback::element::{Definition, ElementType, Operator};
use lookback::strategy::Mode;
use std::error::Error;
use std::sync::Arc;

/// The first GPU.
pub fn open() -> Result<(Scanner, Arc<CudaStream>), Box<dyn Error>> {
    lookback::cuda::toolkit::probe_driver()?; // cudarc panics where there is no driver
    let context = CudaContext::new(0)?;
    Ok((Scanner::new(&context)?, context.new_stream()?))
}

/// Compiles, loads and allocates beforehand what the call needs, which then does none of it.
pub fn warm_up(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = stream.clone_htod(&[1, 2, 3])?;
    let mut y = stream.alloc_zeros::<i32>(3)?;
    scanner.run(stream, sum).input(&x).output(&mut y).warm_up(Mode::Inclusive)?;
    scanner.run(stream, sum).input(&x).output(&mut y).inclusive()?;
    expect(&stream.clone_dtoh(&y)?, &[1, 3, 6])
}
