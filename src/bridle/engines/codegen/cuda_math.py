"""What every kernel begins with: the machine's own instructions, and arithmetic that they are put together from."""

from __future__ import annotations

MACHINE = """// What the machine offers: an exchange between lanes, and copies that go on in the background.
#ifndef INFINITY
#define INFINITY __longlong_as_double(0x7ff0000000000000LL)
#endif
#ifndef NAN
#define NAN __longlong_as_double(0x7ff8000000000000LL)
#endif
__device__ __forceinline__ double _swap(unsigned mask, double v, int m) { return __shfl_xor_sync(mask, v, m); }
__device__ __forceinline__ long long _swap(unsigned mask, long long v, int m) { return __shfl_xor_sync(mask, v, m); }
__device__ __forceinline__ bool _swap(unsigned mask, bool v, int m) { return __shfl_xor_sync(mask, (int)v, m) != 0; }
template <int LANES> __device__ __forceinline__ double _from(unsigned mask, double v, int lane) {
    return __shfl_sync(mask, v, lane, LANES);
}
__device__ __forceinline__ double _inverse_guess(double x) { double y; asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x)); return y; }
__device__ __forceinline__ double _root_guess(double x) { double y; asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x)); return y; }
__device__ __forceinline__ double _either(bool flag, double a, double b) {  // both are there: a choice that is never made a branch
    double made;
    asm("{ .reg .pred p; setp.ne.s32 p, %3, 0; selp.f64 %0, %1, %2, p; }" : "=d"(made) : "d"(a), "d"(b), "r"((int)flag));
    return made;
}
__device__ __forceinline__ bool _any(bool flag) { return __any_sync(0xffffffffu, flag); }  // in any lane of a warp
__device__ __forceinline__ double _apart(double x) { asm("" : "+d"(x)); return x; }  // the compiler cannot tell that it is the same
__device__ __forceinline__ int _high(double x) { return __double2hiint(x); }
__device__ __forceinline__ int _low(double x) { return __double2loint(x); }
__device__ __forceinline__ double _word(int high, int low) { return __hiloint2double(high, low); }
__device__ __forceinline__ void _fetch(double* to, const double* from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
#else
    *to = *from;
#endif
}
__device__ __forceinline__ void _fetched() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
"""

PREAMBLE = """
template <class T, class U> __device__ __forceinline__ T _max(T a, U b) { return (a < b || b != b) ? (T)b : a; }
template <class T, class U> __device__ __forceinline__ T _min(T a, U b) { return (a > b || b != b) ? (T)b : a; }
template <class T> __device__ __forceinline__ T _pick(bool flag, T a, T b) { return flag ? a : b; }
template <class T> __device__ __forceinline__ T _sign(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : x; }
template <class T> __device__ __forceinline__ T _abs(T x) { return x < 0 ? -x : x; }
template <> __device__ __forceinline__ double _abs(double x) { return fabs(x); }
template <class T> __device__ __forceinline__ bool _less(T a, T b) { return a < b || (b != b && a == a); }
__device__ __forceinline__ bool _finite(double x) { return x - x == 0.0; }
template <class T> __device__ __forceinline__ T _square(T x) { return x * x; }
template <int N, class T> __device__ __forceinline__ T _power(T x) {
    T made = x;
    #pragma unroll
    for (int i = 1; i < N; ++i) made = made * x;
    return made;
}
__device__ __forceinline__ double _real(bool flag) { return flag ? 1.0 : 0.0; }
// Division, roots, exponentials and logarithms to a unit in the last place or two, without a branch: the compiler lets such chains overlap.
// Numbers below the smallest normal one count as zero in them, and those within a factor of 4 of the largest may count as infinite.
// Whether an operand is out of the ordinary is found beside the chain, not at its end.
__device__ __forceinline__ double _over(double a, double b) {
    const double guess = _inverse_guess(b), e = fma(-b, guess, 1.0), inverse = fma(guess, fma(e, e, e), guess);
    const double q = a * inverse, made = fma(fma(-b, q, a), inverse, q);
    const int above = (_high(a) & 0x7ff00000) >> 20, below = (_high(b) & 0x7ff00000) >> 20;
    const bool plain = (unsigned)(below - 1) < 2044u && above < 2047 && above - below < 1024;
    return _either(plain, made, a * guess);
}
__device__ __forceinline__ double _root(double x) {
    const double guess = _root_guess(x), g = x * guess, h = 0.5 * guess, e = fma(-g, h, 0.5);
    const double better = fma(g, e, g), made = fma(fma(-better, better, x), fma(h, e, h), better);
    const int high = _high(x);
    const double odd = (high & 0x7ff00000) == 0 ? 0.0 : high < 0 ? NAN : x;
    return _either((unsigned)(high - 0x00100000) < 0x7fe00000u, made, odd);
}
__device__ __forceinline__ bool _vanishes(double x) { return (_high(x) & 0x7ff00000) == 0; }  // whether the root of x is 0
__device__ __forceinline__ double _over_root(double a, double x) {
    const double guess = _root_guess(x), e = fma(-x * guess, guess, 1.0), made = fma(guess * e, fma(0.375, e, 0.5), guess);
    const int high = _high(x);
    const double odd = (high & 0x7ff00000) == 0 ? INFINITY : high < 0 || x != x ? NAN : 0.0;
    return a * _either((unsigned)(high - 0x00100000) < 0x7fe00000u, made, odd);
}
__device__ __forceinline__ double _exp(double x) {
    const double shifted = fma(x, 1.4426950408889634, 6755399441055744.0), k = shifted - 6755399441055744.0;
    const double r = fma(k, -1.9082149292705877e-10, fma(k, -0.6931471803691238, x));
    const double r2 = r * r, r4 = r2 * r2;
    const double a = fma(r, 0.16666666666666669, 0.5000000000000001), b = fma(r, 0.008333333333330062, 0.04166666666662413);
    const double c = fma(r, 0.00019841269863053618, 0.0013888888917213717), d = fma(r, 2.7557268459997064e-06, 2.4801521295954376e-05);
    const double e = fma(r, 2.510038549551032e-08, 2.7620088445409746e-07);
    const double sum = fma(r4, fma(r4, e, fma(r2, d, c)), fma(r2, b, a)), less = fma(r2, sum, r);
    const double power = _word((_low(shifted) + 1023) << 20, 0);
    const bool plain = (_high(x) & 0x7fffffff) < 0x40862b00;  // |x| < 709.375
    return _either(plain, fma(less, power, power), x > 0.0 ? INFINITY : x < 0.0 ? 0.0 : x);
}
__device__ __forceinline__ double _log1p(double x) {
    const double u = 1.0 + x, back = u - 1.0, lost = (1.0 - (u - back)) + (x - back);  // 1 + x = u + lost
    const int shift = (_high(u) - 0x3fe6a09e) >> 20;  // u = 2^shift m, m around 1
    const double m = _word(_high(u) - shift * 0x100000, _low(u)), f = m - 1.0, b = 1.0 + m, k = (double)shift;
    const double rest = lost * _word((1023 - (shift > 1000 ? 1000 : shift)) << 20, 0);
    const double guess = _inverse_guess(b), e = fma(-b, guess, 1.0), inverse = fma(guess, fma(e, e, e), guess);
    const double q = f * inverse, s = fma(fma(-b, q, f) + rest, inverse, q);  // log m = 2 artanh s
    const double z = s * s, z2 = z * z;
    const double c = fma(z, 0.3999999999989889, 0.666666666666667), d = fma(z, 0.22222211089379496, 0.28571428626253836);
    const double g = fma(z, 0.15331611722055008, 0.1818289243253687);
    const double sum = fma(z2, fma(z2, fma(z2, 0.14617807153417325, g), d), c);
    const double made = fma(k, 0.6931471803691238, fma(2.0, s, fma(s * z, sum, k * 1.9082149292705877e-10)));
    const int high = _high(u);
    const double odd = (high & 0x7ff00000) == 0 ? -INFINITY : high < 0 ? NAN : u;
    return _either((unsigned)(high - 0x00100000) < 0x7fe00000u, made, odd);
}
__device__ __forceinline__ double _logistic(double x) {
    const double e = _exp(-fabs(x));
    return _over(x >= 0.0 ? 1.0 : e, 1.0 + e);
}
__device__ __forceinline__ int _kept(int i, int most) { return i < 0 ? 0 : i > most ? most : i; }
__device__ __forceinline__ long long _within(long long i, long long most) { return i < 0 ? 0 : i > most ? most : i; }
struct _Add { template <class T> static __device__ __forceinline__ T of(T a, T b) { return a + b; } };
struct _Mul { template <class T> static __device__ __forceinline__ T of(T a, T b) { return a * b; } };
struct _Max { template <class T> static __device__ __forceinline__ T of(T a, T b) { return _max(a, b); } };
struct _Min { template <class T> static __device__ __forceinline__ T of(T a, T b) { return _min(a, b); } };
struct _And { template <class T> static __device__ __forceinline__ T of(T a, T b) { return a & b; } };
struct _Or { template <class T> static __device__ __forceinline__ T of(T a, T b) { return a | b; } };
// Two halvings at a time where a warp plays one run, which saves waiting; the bits are those of one after the other.
template <class Op, int LANES, bool QUICK = false, int M = LANES, class T> __device__ __forceinline__ T _across(unsigned mask, T v) {
    if constexpr (M == 1) return v;
    else if constexpr (QUICK && M > 2) {
        const T one = Op::of(v, _swap(mask, v, M / 4)), two = Op::of(_swap(mask, v, M / 2), _swap(mask, v, M / 4 * 3));
        return _across<Op, LANES, QUICK, M / 4>(mask, Op::of(one, two));
    } else return _across<Op, LANES, QUICK, M / 2>(mask, Op::of(v, _swap(mask, v, M / 2)));
}
"""
