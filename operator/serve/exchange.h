// Determines the response to an HTTP request. Pure: needs no connection. Used by server.cc and its
// fuzzer.
#pragma once

#include <boost/beast/http.hpp>
#include <map>
#include <optional>
#include <string>

#include "operator/serve/server.h"

namespace tfjob::serve {

inline constexpr uint32_t kMaxHead = 16 << 10;

using RequestParser = boost::beast::http::request_parser<boost::beast::http::empty_body>;
using Answer = boost::beast::http::response<boost::beast::http::string_body>;

// Sets the parser's limits for the request that it is about to read.
void Limit(RequestParser& parser);

// Returns the response to the request that the parser has read, ready to be written. `error` is the
// error that ended the reading, if any. Returns nullopt if no response can be sent. If the
// response's keep_alive() is false, the caller must close the connection after sending it.
std::optional<Answer> AnswerTo(const RequestParser& parser, boost::beast::error_code error,
                               const std::map<std::string, Handler>& handlers);

}  // namespace tfjob::serve
