//! Calls of the public API as a program of its user makes them: arrays of cudarc, a [`Scanner`], and nothing of the laboratory's.

use crate::cuda::error::{Context as _, CudaError};
use crate::cuda::{ScanElement, Scanner};
use crate::element::{ElementType, Operator, element_types};
use crate::strategy::Mode;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream};
use half::{bf16, f16};
use std::sync::Arc;

/// One call after the other, put onto a stream.
pub(super) trait Calls {
    /// Puts one onto the stream.
    fn call(&mut self) -> Result<(), CudaError>;

    /// What the last one stored, once it is done.
    fn output(&self) -> Result<Vec<u8>, CudaError>;

    /// The stream that they are put onto.
    fn stream(&self) -> &CudaStream;
}

/// What is called, and over which elements.
pub(super) struct Called<'a> {
    pub(super) element: ElementType,
    pub(super) operator: Operator,
    pub(super) mode: Mode,
    pub(super) input: &'a [u8],
}

/// A program that uses one GPU: its context, with cudarc's event tracking or without, its stream and its scanner.
pub(super) struct Program {
    stream: Arc<CudaStream>,
    scanner: Arc<Scanner>,
}

struct ScanCalls<T> {
    stream: Arc<CudaStream>,
    scanner: Arc<Scanner>,
    operator: Operator,
    mode: Mode,
    input: CudaSlice<T>,
    output: CudaSlice<T>,
}

impl Program {
    /// Opens the GPU with this number once more: of the laboratory's own context event tracking is switched off.
    pub(super) fn new(ordinal: usize, has_tracking: bool) -> Result<Self, CudaError> {
        let context = CudaContext::new(ordinal).during(|| format!("opening CUDA device {ordinal}"))?;
        if !has_tracking {
            // SAFETY: the arrays of `ScanCalls` are used on the one stream of their program alone.
            unsafe { context.disable_event_tracking() };
        }
        let stream = context.new_stream().during(|| String::from("making a stream"))?;
        Ok(Self { stream, scanner: Arc::new(Scanner::new(&context)?) })
    }

    /// Calls over arrays of their own; `None` where numbers of that type are none that a call takes.
    pub(super) fn calls(&self, called: &Called<'_>) -> Result<Option<Box<dyn Calls>>, CudaError> {
        element_types!(of_type { self, called })
    }

    fn of<T: ScanElement>(&self, called: &Called<'_>) -> Result<Box<dyn Calls>, CudaError> {
        let mut elements = vec![T::zeroed(); called.input.len() / size_of::<T>()];
        bytemuck::cast_slice_mut(&mut elements).copy_from_slice(called.input);
        let input = self.stream.clone_htod(&elements).during(|| String::from("copying an input to the device"))?;
        // SAFETY: every element is stored by a call before it is read.
        let output = unsafe { self.stream.alloc(elements.len()) }.during(|| String::from("allocating an output"))?;
        let Called { operator, mode, .. } = *called;
        let (stream, scanner) = (Arc::clone(&self.stream), Arc::clone(&self.scanner));
        Ok(Box::new(ScanCalls { stream, scanner, operator, mode, input, output }))
    }
}

macro_rules! of_type {
    ({ $program:ident, $called:ident }
        integers { $($(#[$_i:meta])* $integer:ident = $_in:literal, $integer_type:ident, $_ic:literal;)* }
        floats { $($(#[$_f:meta])* $float:ident = $_fn:literal, $float_type:ident, $_fc:literal;)* }
        halves { $($(#[$_h:meta])* $half:ident = $_hn:literal, $half_type:ident, $_hc:literal;)* }
        own $_own:tt
    ) => {
        match $called.element {
            $(ElementType::$integer => $program.of::<$integer_type>($called).map(Some),)*
            $(ElementType::$float => $program.of::<$float_type>($called).map(Some),)*
            $(ElementType::$half => $program.of::<$half_type>($called).map(Some),)*
            _ => Ok(None),
        }
    };
}
use of_type;

impl<T: ScanElement> Calls for ScanCalls<T> {
    fn call(&mut self) -> Result<(), CudaError> {
        let call = if self.mode == Mode::Inclusive { Scanner::inclusive } else { Scanner::exclusive };
        call(&self.scanner, &self.stream, self.operator, &self.input, &mut self.output)
    }

    fn output(&self) -> Result<Vec<u8>, CudaError> {
        let elements = self.stream.clone_dtoh(&self.output).during(|| String::from("reading an output"))?;
        Ok(bytemuck::cast_slice(&elements).to_vec())
    }

    fn stream(&self) -> &CudaStream {
        &self.stream
    }
}
