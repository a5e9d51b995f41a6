# Runs in a new network and mount namespace, makes /etc and /run private, and
# holds both namespaces until its standard input closes. HOLD_DIR is an empty
# directory. Nothing may run here before /etc is private: a client would write
# the host's resolv.conf.
mount -t tmpfs tmpfs "$HOLD_DIR"
mkdir "$HOLD_DIR/upper" "$HOLD_DIR/work"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$HOLD_DIR/upper,workdir=$HOLD_DIR/work" /etc
mount -t tmpfs tmpfs /run
rm -f /etc/resolv.conf
echo 'nameserver 198.18.0.254' >/etc/resolv.conf
ip link set lo up
echo ready
exec cat >/dev/null
