//! Threads. The only file that names rayon, and the only one that names a SIMD dispatcher.
//!
//! Parallelism is a parameter, and results do not depend on it: work is cut by its own shape, never by
//! the number of threads, and joined in a fixed order.

use gibbsite_core::error::InferError;
use gibbsite_core::infer::fork::{Fork, Job, Span};
use gibbsite_core::math::Real;
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many threads may work.
///
/// ```
/// use gibbsite::par::Par;
/// let squares = Par::Rayon(2).run(|par| par.map(vec![1, 2, 3], |x| x * x));
/// assert_eq!(squares, [1, 4, 9]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Par {
    /// The calling thread only.
    Seq,
    /// That many threads.
    Rayon(usize),
}

impl Par {
    /// All cores.
    pub fn all() -> Self {
        Self::threads(std::thread::available_parallelism().map_or(1, Into::into))
    }

    /// `n` threads; one is [`Par::Seq`], and so is zero.
    pub fn threads(n: usize) -> Self {
        if n <= 1 { Self::Seq } else { Self::Rayon(n) }
    }

    /// How many threads that is.
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Seq => 1,
            Self::Rayon(n) => n.max(1),
        }
    }

    /// Runs `work` inside a pool of this size. If the system refuses to start threads, the calling thread does the work.
    pub fn run<R: Send>(self, work: impl FnOnce(Self) -> R + Send) -> R {
        match self {
            Self::Seq => work(Self::Seq),
            Self::Rayon(n) => match rayon::ThreadPoolBuilder::new().num_threads(n).build() {
                Ok(pool) => {
                    // Threads that are still starting would miss the first pieces of work, often the largest.
                    pool.broadcast(|_| ());
                    pool.install(|| work(self))
                }
                Err(_) => work(Self::Seq),
            },
        }
    }

    /// Keeps the other threads of the pool looking for work until `work` is done, for a solver that hands out pieces of a tenth of a
    /// millisecond one after the other: rayon's threads fall asleep after a few microseconds without work, and waking one takes as long as
    /// such a piece. They take a core each meanwhile; so not around what is mostly done by one thread. Inside [`Par::run`].
    pub(crate) fn awake<R>(self, work: impl FnOnce() -> R) -> R {
        let (over, awake) = (AtomicBool::new(false), AtomicUsize::new(0));
        let caller = rayon::current_thread_index();
        if self == Self::Seq || caller.is_none() {
            return work();
        }
        rayon::in_place_scope(|scope| {
            scope.spawn_broadcast(|_, _| {
                if rayon::current_thread_index() == caller {
                    return;
                }
                awake.fetch_add(1, Ordering::Relaxed);
                // Not all the time: looking into another thread's queue slows it down. And without hints that this is a spin loop: on a virtual
                // machine they hand the core to others.
                while (0..256).all(|_| !over.load(Ordering::Relaxed)) {
                    while rayon::yield_now() == Some(rayon::Yield::Executed) {}
                }
            });
            // All of them, before there is work: a thread that came to this in the middle of a piece would never end the piece.
            while awake.load(Ordering::Relaxed) + 1 < rayon::current_num_threads() {
                std::hint::spin_loop();
            }
            let _over = AtLast(&over);
            work()
        })
    }

    /// `items` one by one through `f`, results in their order.
    pub fn map<A: Send, B: Send>(self, items: Vec<A>, f: impl Fn(A) -> B + Sync + Send) -> Vec<B> {
        match self {
            Self::Seq => items.into_iter().map(f).collect(),
            Self::Rayon(_) => items.into_par_iter().map(f).collect(),
        }
    }

    /// Both results, computed at the same time if there are two threads.
    ///
    /// ```
    /// use gibbsite::par::Par;
    /// assert_eq!(Par::Rayon(2).run(|par| par.join(|| 1, || 2)), (1, 2));
    /// ```
    pub fn join<A: Send, B: Send>(
        self,
        a: impl FnOnce() -> A + Send,
        b: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        match self {
            Self::Seq => (a(), b()),
            Self::Rayon(_) => rayon::join(a, b),
        }
    }

    /// `f(0)`, …, `f(n - 1)`, in that order; for many cheap calls.
    ///
    /// ```
    /// use gibbsite::par::Par;
    /// assert_eq!(Par::Rayon(2).run(|par| par.map_range(3, |i| 2 * i)), [0, 2, 4]);
    /// ```
    pub fn map_range<B: Send>(self, n: usize, f: impl Fn(usize) -> B + Sync + Send) -> Vec<B> {
        match self {
            Self::Seq => (0..n).map(f).collect(),
            Self::Rayon(_) => (0..n).into_par_iter().with_min_len(64).map(f).collect(),
        }
    }

    /// `out[k] = f(k)`, without allocating; `grain` of them at a time.
    ///
    /// ```
    /// use gibbsite::par::Par;
    /// let mut out = [0; 3];
    /// Par::Rayon(2).run(|par| par.fill(&mut out, 1, |k| 10 * k));
    /// assert_eq!(out, [0, 10, 20]);
    /// ```
    pub fn fill<B: Send>(self, out: &mut [B], grain: usize, f: impl Fn(usize) -> B + Sync + Send) {
        match self {
            Self::Seq => out.iter_mut().enumerate().for_each(|(k, out)| *out = f(k)),
            Self::Rayon(_) => {
                out.par_iter_mut().with_min_len(grain.max(1)).enumerate().for_each(|(k, out)| *out = f(k));
            }
        }
    }
}

/// Says so when it is dropped, also by a panic.
struct AtLast<'a>(&'a AtomicBool);

impl Drop for AtLast<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs core's table work on a desk: with the widest vector instructions that the processor has, and on threads.
///
/// Neither changes a bit of the result: the instructions are the same additions and multiplications
/// (none is fused), and chunks are independent.
#[derive(Debug)]
pub struct DeskFork<T> {
    par: Par,
    arch: pulp::Arch,
    temp: Vec<T>,
}

impl<T: Real> DeskFork<T> {
    /// For this many threads; inside [`Par::run`].
    pub fn new(par: Par) -> Self {
        Self { par, arch: pulp::Arch::new(), temp: Vec::new() }
    }
}

/// One chunk as something that the SIMD dispatcher can inline.
struct Chunk<'a, T, J> {
    job: &'a J,
    index: usize,
    chunk: &'a mut [T],
    temp: &'a mut [T],
}

impl<T: Real, J: Job<T>> pulp::NullaryFnOnce for Chunk<'_, T, J> {
    type Output = Span<T>;
    #[inline(always)]
    fn call(self) -> Span<T> {
        self.job.chunk(self.index, self.chunk, self.temp)
    }
}

impl<T: Real> Fork<T> for DeskFork<T> {
    fn run<J: Job<T>>(&mut self, out: &mut [T], chunk_len: usize, job: &J) -> Result<Span<T>, InferError> {
        let chunk_len = chunk_len.max(1);
        let arch = self.arch;
        let len = job.temp_len();
        if out.len() <= chunk_len || self.par == Par::Seq {
            self.temp.resize(self.temp.len().max(len), T::zero());
            let mut span = Span::empty();
            for (index, chunk) in out.chunks_mut(chunk_len).enumerate() {
                span = span.join(arch.dispatch(Chunk { job, index, chunk, temp: &mut self.temp }));
            }
            return Ok(span);
        }
        Ok(out
            .par_chunks_mut(chunk_len)
            .enumerate()
            .map_init(
                || vec![T::zero(); len],
                |temp, (index, chunk)| arch.dispatch(Chunk { job, index, chunk, temp }),
            )
            .reduce(Span::empty, Span::join))
    }
}

/// Work that is worth compiling for the widest vector instructions of the processor at hand. `run` and what it calls must be
/// `#[inline(always)]`: only what is inlined is compiled that way, which closures are not.
pub(crate) trait Kernel {
    /// What it gives.
    type Output;
    /// Does it.
    fn run(self) -> Self::Output;
}

/// Runs a kernel with the widest vector instructions that this processor has.
#[inline(always)]
pub(crate) fn vectorized<K: Kernel>(kernel: K) -> K::Output {
    pulp::Arch::new().dispatch(Call(kernel))
}

/// A kernel as something that the SIMD dispatcher can inline.
struct Call<K>(K);

impl<K: Kernel> pulp::NullaryFnOnce for Call<K> {
    type Output = K::Output;
    #[inline(always)]
    fn call(self) -> K::Output {
        self.0.run()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Joins within joins, so that threads wait for one another in the middle of pieces.
    fn sum(par: Par, numbers: std::ops::Range<u64>) -> u64 {
        if numbers.end - numbers.start <= 2 {
            return numbers.sum();
        }
        let middle = numbers.start.midpoint(numbers.end);
        let (left, right) = par.join(|| sum(par, numbers.start..middle), || sum(par, middle..numbers.end));
        left + right
    }

    #[test]
    fn threads_that_are_kept_awake_do_all_work_and_end() {
        for n in [1, 2, 3, 8] {
            let found = Par::threads(n).run(|par| {
                par.awake(|| {
                    let outer: Vec<u64> = par.map((0..20).collect(), |k| sum(par, 0..10 * k));
                    // Also within another, and with nothing to do for a while.
                    std::thread::sleep(std::time::Duration::from_millis(2));
                    par.awake(|| outer.iter().sum::<u64>() + sum(par, 0..1000))
                })
            });
            let right: u64 = (0..20).map(|k| (0..10 * k).sum::<u64>()).sum::<u64>() + 499_500;
            assert_eq!(found, right, "{n} threads");
        }
    }

    #[test]
    fn a_panic_lets_them_sleep() {
        let fallen = std::panic::catch_unwind(|| Par::Rayon(2).run(|par| par.awake(|| panic!("on purpose"))));
        assert!(fallen.is_err());
        // Without a pool there is nobody to keep awake.
        assert_eq!(Par::Rayon(2).awake(|| 1), 1);
    }
}
