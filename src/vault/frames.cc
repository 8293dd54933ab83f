#include "vault/frames.h"

#include <array>

namespace sallyport::vault {

net::Task<Result<std::optional<FrameHeader>>> Frames::read_header() {
  std::array<char, kFrameHeaderBytes> bytes{};
  std::size_t done = 0;
  while (done < bytes.size()) {
    auto got = co_await stream_->read_some(std::span(bytes).subspan(done));
    if (!got) co_return fail(std::move(got));
    if (*got == 0 && done == 0) co_return std::optional<FrameHeader>();
    if (*got == 0) co_return fail(Reason::VaultUnavailable, "lane: ended inside a frame");
    done += *got;
  }
  const auto header = decode_frame_header({bytes.data(), bytes.size()});
  if (!header) co_return fail(Reason::VaultRefused, "lane: an unknown or oversized frame");
  co_return header;
}

net::Task<Status> Frames::read_exactly(std::span<char> into) {
  while (!into.empty()) {
    auto got = co_await stream_->read_some(into);
    if (!got) co_return fail(std::move(got));
    if (*got == 0) co_return fail(Reason::VaultUnavailable, "lane: ended inside a frame");
    into = into.subspan(*got);
  }
  co_return Status();
}

net::Task<Result<std::string>> Frames::read_payload(std::size_t bytes) {
  std::string payload(bytes, '\0');
  if (auto read = co_await read_exactly(payload); !read) co_return fail(std::move(read));
  co_return payload;
}

net::Task<Status> Frames::write(FrameType type, std::string_view payload) {
  const auto header = encode_frame_header({type, static_cast<std::uint32_t>(payload.size())});
  if (auto sent = co_await stream_->write_all({header.data(), header.size()}); !sent) co_return sent;
  co_return co_await stream_->write_all(payload);
}

}  // namespace sallyport::vault
