/* Computes the Bessel functions of orders 0 and 1 and Airy's function Ai; see special.h. Formula numbers refer to the NIST Digital Library of
 * Mathematical Functions (DLMF), https://dlmf.nist.gov
 *
 * Near 0, factors and terms that have no power series, such as log(x), are split off, and a polynomial gives the rest. For large arguments,
 * polynomials give the amplitudes in the asymptotic form of the function. All polynomials interpolate at Chebyshev nodes, in a variable t that goes
 * from -1 to 1; their coefficients were computed with 40 digits. */
#include <math.h>

#include "kernel/cpu/vecmath_special.h"
#include "kernel/special.h"

#define COUNT(c) ((int)(sizeof(c) / sizeof *(c)))

static const double pi = 0x1.921fb54442d18p1;

/* The cosine and the sine of x - pi / 4, both multiplied by sqrt(2 / (pi x)). The asymptotic forms of the Bessel functions for large x contain
 * these factors. */
struct wave {
    double cosine, sine;
};

/* Returns struct wave for x = a + low, where `low` is small. a + low is never rounded to one double, which would lose `low`. */
static struct wave wave_of(double a, double low)
{
    const double cosine = cos(a), sine = sin(a), c = cosine - low * sine, s = sine + low * cosine, scale = 1 / sqrt(pi * a);
    return (struct wave){(s + c) * scale, (s - c) * scale};
}

/* ---- Bessel functions -------------------------------------------------------------------------------------------------------------- */
static const double j0_near[] = {-0.05728080421634534,    0.07436630462755323,   -0.03277786210789048,    0.0073758943041960165,
                                 -0.001013405346985002,   9.414473580700135e-05, -6.3193186183226215e-06, 3.2115623516564253e-07,
                                 -1.2795360168830149e-08, 4.105691264784227e-10, -1.0840781056109453e-11, 2.397233397741537e-13,
                                 -4.5085752089032645e-15, 7.288770764962117e-17};
static const double j1_near[] = {-0.01587595431164548,    0.013090777521810029,  -0.004240225993395717,  0.0007552540432951285,
                                 -8.592956232073762e-05,  6.814683895178348e-06, -3.991381169521328e-07, 1.7995159919478174e-08,
                                 -6.443130988461722e-10,  1.877382037297072e-11, -4.540044272552642e-13, 9.260767309653863e-15,
                                 -1.6162359379455382e-16, 2.4376394655730374e-18};
static const double y0_near[] = {0.4837248578102995,      -0.4326558222855125,    -0.4705763655297288,     0.38851639956570944,
                                 -0.11151682184328618,    0.01763534538933875,    -0.0018028096665526022,  0.00012994629092087043,
                                 -6.9855043677424995e-06, 2.914220687772586e-07,  -9.720964498735135e-09,  2.6539990841505484e-10,
                                 -6.0431800819788006e-12, 1.1655644277636366e-13, -1.9305329316713124e-15, 2.7720674959983853e-17};
static const double y1_near[] = {0.13974939033568806,     0.09108650838448444,    -0.16312020358118715,    0.06634695354779108,
                                 -0.013433433740818153,   0.0016688031328635938,  -0.0001414183579449178,  8.73309830485033e-06,
                                 -4.1137780773696086e-07, 1.5288901821935808e-08, -4.6013042449452613e-10, 1.1448948814338089e-11,
                                 -2.395476597845752e-13,  4.2745900758431e-15,    -6.587839495515896e-17,  8.846734411761482e-19};
static const double p0_far[] = {0.9986347659091991,      -0.001327493127200339,  3.491730581252044e-05,  -2.459963325168103e-06,
                                2.975900553746619e-07,   -5.086425840264451e-08, 1.1058780568890595e-08, -2.871060070650354e-09,
                                8.537676263486641e-10,   -2.829452496746712e-10, 1.0436064350820112e-10, -4.106525217778278e-11,
                                1.2759965127797933e-11,  -4.91251230693199e-12,  8.185823082059821e-12,  -4.552209147917835e-12,
                                -2.7471611955307327e-12, 1.744128580941252e-12,  1.4135159640864857e-12, -8.369869275701596e-13};
static const double q0_far[] = {-0.12361496352611864,    0.001314213972910237,   -6.338715442513257e-05, 6.239113170466805e-06,
                                -9.409875312710735e-07,  1.8870296015840276e-07, -4.63978199552338e-08,  1.3296752836791914e-08,
                                -4.295554938184743e-09,  1.5272918979801804e-09, -5.811510556278745e-10, 2.373363577724958e-10,
                                -1.2115517654380601e-10, 5.843656666984275e-11,  5.53339786752136e-12,   -7.131780305763748e-12,
                                -3.599094494084107e-11,  2.2610125498080994e-11, 1.70606170155461e-11,   -1.1153425787578828e-11,
                                -5.912786560846945e-12,  3.750660241439195e-12};
static const double p1_far[] = {1.0022906462560661,      0.002241463213917126,    -4.5782806531241475e-05, 2.978621109034246e-06,
                                -3.4667186580139646e-07, 5.7916610107440336e-08,  -1.2403208324099435e-08, 3.1855032324146683e-09,
                                -9.396111382507204e-10,  3.09413943706809e-10,    -1.1347108608292092e-10, 4.4449687372999163e-11,
                                -1.386282352897023e-11,  5.336343631938542e-12,   -8.698156687887373e-12,  4.824788889110816e-12,
                                2.890976936914703e-12,   -1.8347559597628753e-12, -1.4950516095189181e-12, 8.840536838471388e-13};
static const double q1_far[] = {0.3730474331740802,     -0.0018648496218413013,  7.898094177947462e-05,   -7.369927948656423e-06,
                                1.0798853927846824e-06, -2.1266739030367083e-07, 5.1641441371192136e-08,  -1.4664417758215227e-08,
                                4.704019137859182e-09,  -1.6631302085483532e-09, 6.301395079605953e-10,   -2.563874349687109e-10,
                                1.2997716607081212e-10, -6.246565517709986e-11,  -5.371760586689513e-12,  7.28528462546879e-12,
                                3.791835489251781e-11,  -2.3787616104980884e-11, -1.7921216001705988e-11, 1.1707414303702014e-11,
                                6.22447631529189e-12,   -3.944260029715492e-12};

/* A zero of a Bessel function as the sum of two doubles, because one double does not have enough digits. */
struct root {
    double high, low;
};

/* The factors p of the cosine and q of the sine in the asymptotic forms 10.17.3 and 10.17.4 of the DLMF. q is an odd function of 1 / a, where a is
 * the argument of the Bessel function. */
struct amplitudes {
    double p, q;
};

/* Returns p and q, the factors of the cosine and the sine in the asymptotic form of J0 and Y0, for a large argument a. */
static struct amplitudes amplitudes_0(double a)
{
    const double t = 50 / (a * a) - 1;
    return (struct amplitudes){vm_poly_long(p0_far, COUNT(p0_far), t), vm_poly_long(q0_far, COUNT(q0_far), t) / a};
}

/* Returns p and q, the factors of the cosine and the sine in the asymptotic form of J1 and Y1, for a large argument a. */
static struct amplitudes amplitudes_1(double a)
{
    const double t = 50 / (a * a) - 1;
    return (struct amplitudes){vm_poly_long(p1_far, COUNT(p1_far), t), vm_poly_long(q1_far, COUNT(q1_far), t) / a};
}

/* Returns a^2 - root^2 as a product, which is accurate even if a is close to the root. */
static double from_root(double a, struct root root)
{
    return (a - root.high - root.low) * (a + root.high);
}

double grd_math_bessel_j0(double x)
{
    const double a = fabs(x);
    if (a <= 5)
        return from_root(a, (struct root){2.404825557695773, -1.176691651530894e-16}) *
               vm_poly_long(j0_near, COUNT(j0_near), a * a * 0.08 - 1);
    const struct wave w = wave_of(a, 0);
    const struct amplitudes by = amplitudes_0(a);
    return by.p * w.cosine - by.q * w.sine;
}

/* Returns the Bessel function J1(x). With a = |x|, its asymptotic form contains cos(a - 3 pi / 4) = sin(a - pi / 4) and sin(a - 3 pi / 4) =
 * -cos(a - pi / 4). wave_of computes the sine and the cosine of a - pi / 4. */
double grd_math_bessel_j1(double x)
{
    const double a = fabs(x);
    if (a <= 5)
        return x * from_root(a, (struct root){3.8317059702075125, -1.5269184090088067e-16}) *
               vm_poly_long(j1_near, COUNT(j1_near), a * a * 0.08 - 1);
    const struct wave w = wave_of(a, 0);
    const struct amplitudes by = amplitudes_1(a);
    return copysign(1, x) * (by.p * w.sine + by.q * w.cosine);
}

/* Returns the Bessel function Y0(x). For small x it uses formula 10.8.1 of the DLMF: Y0(x) - 2 / pi * log(x) * J0(x) is a power series. */
double grd_math_bessel_y0(double x)
{
    if (!(x > 0))
        return x == 0 ? -INFINITY : NAN;
    if (x <= 5)
        return vm_poly_long(y0_near, COUNT(y0_near), x * x * 0.08 - 1) + 2 / pi * log(x) * grd_math_bessel_j0(x);
    const struct wave w = wave_of(x, 0);
    const struct amplitudes by = amplitudes_0(x);
    return by.p * w.sine + by.q * w.cosine;
}

double grd_math_bessel_y1(double x)
{
    if (!(x > 0))
        return x == 0 ? -INFINITY : NAN;
    if (x <= 5)
        return x * vm_poly_long(y1_near, COUNT(y1_near), x * x * 0.08 - 1) + 2 / pi * (log(x) * grd_math_bessel_j1(x) - 1 / x);
    const struct wave w = wave_of(x, 0);
    const struct amplitudes by = amplitudes_1(x);
    return by.q * w.sine - by.p * w.cosine;
}

/* ---- Modified Bessel functions ----------------------------------------------------------------------------------------------------- */
static const double k0_near[] = {-0.30362077291575545,   0.3404973210133806,    0.07177701034240512,    0.005053392643196092,
                                 0.00018280555827901256, 4.054506619948951e-06, 6.093361934166155e-08,  6.623013294285102e-10,
                                 5.45210758801694e-12,   3.518416609353651e-14, 1.8282990225823977e-16, 7.814781857140499e-19};
static const double k1_near[] = {0.8850882877295894,     -0.3322409552403131,    -0.24383852886774365,   -0.027854235219771848,
                                 -0.0013831688466153064, -3.891869064369595e-05, -7.081133770184678e-07, -9.032127548326391e-09,
                                 -8.532735114049789e-11, -6.213805760202496e-13, -3.596218101407312e-15, -1.6940259166566876e-17};
static const double k0_far[] = {1.2249349523936164,      -0.03105176559720918,    -0.0031259322503867054,  -0.0005131057204821483,
                                -7.142480657536066e-05,  -1.31854451247829e-05,   -1.8853600299583915e-06, -4.043313820123853e-07,
                                -4.9007928608286575e-08, -1.499671036463145e-08,  -7.114630707030454e-10,  -7.816007508900362e-10,
                                8.576082574135443e-11,   -6.743687218429927e-11,  1.7448591252875113e-11,  -8.017328377062673e-12,
                                4.885330428917517e-12,   -2.2101540704881786e-12, -4.425526110480244e-13,  2.496766435237197e-13,
                                4.665948013729172e-13,   -2.248776938585175e-13};
static const double k1_far[] = {1.3422531533667765,     0.10144268618110525,    0.014717899550322608,   0.0025922175595845956,
                                0.00044895292511746014, 8.35061977533917e-05,   1.5011105038163357e-05, 2.8979107564598752e-06,
                                5.200322741137815e-07,  1.0587221067773476e-07, 1.7897151590930107e-08, 4.168442582274291e-09,
                                5.422869665506767e-10,  1.9793941197439743e-10, 4.740063862389566e-12,  1.346587608862658e-11,
                                -4.394760598770043e-12, 2.56926786893616e-12,   4.995300825860972e-13,  -2.5698694325791463e-13,
                                -4.998777416376733e-13, 2.415649622755462e-13};

/* Returns K0(x), multiplied by exp(x) if `scaled`. For small x it uses formula 10.31.2 of the DLMF, for larger x formula 10.40.2 with a polynomial in
 * 1 / (x + 1). */
static double bessel_k0(double x, bool scaled)
{
    if (!(x > 0))
        return x == 0 ? INFINITY : NAN;
    if (x <= 2) {
        const double y = vm_poly_long(k0_near, COUNT(k0_near), 0.5 * x * x - 1) - log(0.5 * x) * vm_i0_near(x);
        return scaled ? y * exp(x) : y;
    }
    const double y = vm_poly_long(k0_far, COUNT(k0_far), 6 / (x + 1) - 1) / sqrt(x);
    return scaled ? y : y * exp(-x);
}

/* Returns K1(x), multiplied by exp(x) if `scaled`. For small x it uses formula 10.31.1 of the DLMF. */
static double bessel_k1(double x, bool scaled)
{
    if (!(x > 0))
        return x == 0 ? INFINITY : NAN;
    if (x <= 2) {
        const double y = vm_poly_long(k1_near, COUNT(k1_near), 0.5 * x * x - 1) / x + log(0.5 * x) * vm_i1_near(x);
        return scaled ? y * exp(x) : y;
    }
    const double y = vm_poly_long(k1_far, COUNT(k1_far), 6 / (x + 1) - 1) / sqrt(x);
    return scaled ? y : y * exp(-x);
}

double grd_math_bessel_k0(double x)
{
    return bessel_k0(x, false);
}

double grd_math_bessel_k1(double x)
{
    return bessel_k1(x, false);
}

double grd_math_scaled_bessel_k0(double x)
{
    return bessel_k0(x, true);
}

double grd_math_scaled_bessel_k1(double x)
{
    return bessel_k1(x, true);
}

/* ---- The Airy function --------------------------------------------------------------------------------------------------------------- */
static const double airy_left[] = {-0.11232506769296609,   1.697131835661986,       0.8775395913512976,      -4.7121273524868545,
                                   1.0671774014462097,     4.366927299873556,       -3.0100545593401673,     -1.2275855276887395,
                                   2.05830967054007,       -0.3868205363827812,     -0.5704679163647883,     0.3473196316661649,
                                   0.021738563010714584,   -0.09192583614781494,    0.027951671225732187,    0.008457172589717905,
                                   -0.007804524562125727,  0.001119858492627886,    0.0008303546160556789,   -0.00040772920140395223,
                                   1.1906989404196536e-05, 4.6059136433046705e-05,  -1.4196364429639348e-05, -1.0538847336391835e-06,
                                   1.7096457853964318e-06, -3.429509348552784e-07,  -6.922918926654389e-08,  4.616788683444851e-08,
                                   -4.360784285291109e-09, -2.4421433471187226e-09, 5.451471453695465e-10,   2.8884719370842105e-11};
static const double airy_middle[] = {0.13529241631288141,     -0.1591474412967932,     0.06764620815644071,     -0.003975837497318634,
                                     -0.007625102761696207,   0.0031835185329561286,   -0.00038669800863171014, -0.0001057520054465078,
                                     4.994322363488635e-05,   -6.8395835268151425e-06, -6.200975243110978e-07,  3.918512660633389e-07,
                                     -5.6512851954449483e-08, -1.4630996663564109e-09, 1.8426828489916426e-09,  -2.761003937113003e-10,
                                     1.4422431866090771e-12,  5.7802605398725145e-12,  -8.321147818143792e-13,  1.1346854746354319e-14};
static const double airy_right[] = {0.27837294100252086,     -0.004109676157978756,   -0.000456383686101033,   -7.848867816529149e-05,
                                    -1.191065868496175e-05,  -2.271650683488361e-06,  -3.5992837741437493e-07, -7.679140996731866e-08,
                                    -1.1131338966742768e-08, -3.0015178272345394e-09, -2.769924080177804e-10,  -1.510479419080514e-10,
                                    5.05464548647982e-12,    -1.1430941178267406e-11, 3.3986635414456354e-12,  -1.806229184868736e-12,
                                    -6.712282941215066e-14,  4.7378520753916876e-14,  3.2146345773949384e-13,  -1.5135281380530066e-13};
static const double airy_p[] = {0.9996702731603566,     -0.0003254319872640742,  4.1286661583898675e-06, -1.542112018342975e-07,
                                1.0673425110164045e-08, -1.111946688727492e-09,  1.5523176137347804e-10, -2.7009279784447237e-11,
                                5.5767871331941175e-12, -1.3217959670763274e-12, 3.5826953364170194e-13, -1.055911937235521e-13,
                                2.4886755848943662e-14, -7.689081775851893e-15,  7.954465641668079e-15,  -3.2320212394488736e-15};
static const double airy_q[] = {0.06911133919898425,    -0.0003247868744479723,  7.854002446823361e-06, -4.2157419627017694e-07,
                                3.72253324142335e-08,   -4.63645655525784e-09,   7.433294476101042e-10, -1.4458159440430413e-10,
                                3.2729537103117715e-11, -8.387642996782981e-12,  2.452339560701946e-12, -7.689539662413537e-13,
                                1.754431707414479e-13,  -5.5428812931951043e-14, 7.01268851212148e-14,  -2.9644034436208375e-14};

/* zeta = 2/3 a^(3/2) as the sum of two doubles. The rounding error of a single double would change the last digits of exp(-zeta), and of the sine and
 * cosine of zeta, when zeta is large. */
struct airy_argument {
    double zeta, low;
};

/* Returns 2/3 a^(3/2) for a > 0 as the sum of two doubles, zeta + low, where `low` is the rounding error of zeta. `root` is sqrt(a). */
static struct airy_argument airy_argument(double a, double root)
{
    const double third_low = 3.7007434154171887e-17; /* 2/3 minus the double nearest to it */
    const double power = a * root, power_low = vm_product_error(a, root, power) - a * vm_product_error(root, root, a) / (2 * root);
    const double zeta = 2. / 3 * power, low = vm_product_error(2. / 3, power, zeta) + 2. / 3 * power_low + third_low * power;
    return (struct airy_argument){zeta, zeta < 0x1p52 ? low : 0};
}

/* Returns Airy's function Ai(x). For -5 <= x <= 2 the result is an interpolating polynomial. Larger x use the asymptotic form 9.7.5 of the DLMF, with
 * a polynomial in 1 / (zeta + 1); smaller x use form 9.7.9. */
double grd_math_airy_ai(double x)
{
    if (x >= -5 && x <= 0)
        return vm_poly_long(airy_left, COUNT(airy_left), 0.4 * x + 1);
    if (x > 0 && x <= 2)
        return vm_poly_long(airy_middle, COUNT(airy_middle), x - 1);
    const double a = fabs(x), root = sqrt(a);
    const struct airy_argument argument = airy_argument(a, root);
    const double zeta = argument.zeta,
                 right = vm_poly_long(airy_right, COUNT(airy_right), 5.7712361663282535 / (zeta + 1) - 1) / sqrt(root);
    if (x > 0)
        return exp(-zeta) * (right - argument.low * right);
    const struct wave w = wave_of(zeta, argument.low);
    const double t = 111.11111111111111 / (zeta * zeta) - 1, p = vm_poly_long(airy_p, COUNT(airy_p), t),
                 q = vm_poly_long(airy_q, COUNT(airy_q), t) / zeta;
    return (p * w.cosine + q * w.sine) * root * 0x1.279a74590331cp-1; /* 1 / sqrt(3) */
}
