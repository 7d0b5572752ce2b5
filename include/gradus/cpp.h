/* Defines what the API adds in C++: numbers of the built-in types convert to grd_scalar, and lists own their elements. gradus/types.h includes this
 * file.
 *
 * Note [Lists in C++]
 * In C the array of a compound literal lives as long as the enclosing block. In C++ the array of an initializer list lives only until the end of the
 * expression. Therefore a list made with grd_dims(2, 3) can be passed to a call without a copy, but must be copied where it is stored in a variable
 * or in an option. The macro grd_dims makes a literal (grd_list_literal) that can be converted only while it is a temporary. The literal converts to
 * a view, which functions take, or to a grd_dims, which owns a copy of the elements. A grd_dims has the memory layout of a view, so that option
 * structs have the same layout in C and in C++. */
#ifndef GRADUS_CPP_H
#define GRADUS_CPP_H

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "gradus/types.h"

inline grd_scalar::grd_scalar(bool value) : grd_scalar(grd_bool(value))
{
}
inline grd_scalar::grd_scalar(int value) : grd_scalar(grd_int(value))
{
}
inline grd_scalar::grd_scalar(unsigned value) : grd_scalar(grd_int(value))
{
}
inline grd_scalar::grd_scalar(long value) : grd_scalar(grd_int(value))
{
}
inline grd_scalar::grd_scalar(unsigned long value) : grd_scalar(grd_uint(value))
{
}
inline grd_scalar::grd_scalar(long long value) : grd_scalar(grd_int(value))
{
}
inline grd_scalar::grd_scalar(unsigned long long value) : grd_scalar(grd_uint(value))
{
}
inline grd_scalar::grd_scalar(double value) : grd_scalar(grd_float(value))
{
}

/* The type of grd_dims(...) and grd_tensors(...): a list whose elements are valid until the end of the expression. Names of parameters and
 * variables in templates end in '_' so that they shadow no name of the program (-Wshadow). */
template <class Element, class View> class grd_list_literal
{
  public:
    grd_list_literal(const std::initializer_list<Element> &list_) : elements(list_)
    {
    }
    grd_list_literal(const grd_list_literal &) = delete;
    grd_list_literal &operator=(const grd_list_literal &) = delete;
    operator View() &&
    {
        View view_;
        view_.n = (std::int64_t)elements.size();
        view_.data = elements.begin();
        return view_;
    }

  private:
    std::initializer_list<Element> elements;
};

struct grd_dims_literal : grd_list_literal<std::int64_t, grd_dims_view> {
    using grd_list_literal::grd_list_literal;
};
struct grd_tensors_literal : grd_list_literal<grd_tensor *, grd_tensors_view> {
    using grd_list_literal::grd_list_literal;
};

/* A list that owns its elements. A list made by the default constructor is absent (data == nullptr). */
template <class Element, class View, class Literal> class grd_list : public View
{
  public:
    grd_list() : View(copy(nullptr, 0))
    {
    }
    grd_list(Element element_) : View(copy(&element_, 1))
    {
    }
    grd_list(const View &list_) : View(copy(list_.data, list_.n))
    {
    }
    grd_list(Literal &&list_) : grd_list(View(std::move(list_)))
    {
    }
    grd_list(const grd_list &other_) : grd_list(static_cast<const View &>(other_))
    {
    }
    grd_list(grd_list &&other_) noexcept : View(other_)
    {
        static_cast<View &>(other_) = copy(nullptr, 0);
    }
    grd_list &operator=(grd_list other_) noexcept
    {
        std::swap(static_cast<View &>(*this), static_cast<View &>(other_));
        return *this;
    }
    ~grd_list()
    {
        delete[] this->data;
    }

  private:
    static View copy(const Element *data_, std::int64_t n_)
    {
        View view_;
        Element *elements_ = data_ != nullptr ? new Element[(std::size_t)n_] : nullptr;
        view_.n = data_ != nullptr ? n_ : 0;
        view_.data = std::copy(data_, data_ + view_.n, elements_) - view_.n;
        return view_;
    }
};

typedef grd_list<std::int64_t, grd_dims_view, grd_dims_literal> grd_dims;
typedef grd_list<grd_tensor *, grd_tensors_view, grd_tensors_literal> grd_tensors;

#define grd_dims(...) grd_dims_literal(std::initializer_list<std::int64_t>{__VA_ARGS__})
#define grd_tensors(...) grd_tensors_literal(std::initializer_list<grd_tensor *>{__VA_ARGS__})
#define GRD_NO_DIMS grd_dims_literal(std::initializer_list<std::int64_t>{})

#endif
